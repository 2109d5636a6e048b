"""Documents of projects: read from files, cut into chunks, and found again by words and by meaning."""
