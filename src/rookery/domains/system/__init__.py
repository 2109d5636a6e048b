"""The server itself: is it there, and which one is it?"""
