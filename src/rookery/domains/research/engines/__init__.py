"""The search engines that there are, a file each. The setting `search_engine` is the name of one of these files."""
