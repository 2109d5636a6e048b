"""Messages: agents write to each other, are answered by a session of the other, and find the rest in their inboxes."""
