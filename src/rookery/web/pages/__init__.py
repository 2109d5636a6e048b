"""The pages, a module for each. What a module declares with `page` and `action` is found by itself."""
