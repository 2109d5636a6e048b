"""The console: pages for people. Each is made of answers of tools that are called as whoever is signed in."""
