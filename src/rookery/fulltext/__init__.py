"""Words of texts, their stems, and how well a text matches a query: the same on both databases. No database here."""
