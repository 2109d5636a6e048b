"""Research: what a search engine finds on the web, made harmless, and within the limits that the engine tells."""
