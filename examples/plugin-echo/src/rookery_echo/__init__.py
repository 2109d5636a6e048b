"""An example plugin: what a domain looks like that lives in a distribution of its own.

Rookery finds it by the entry point `echo` of the group `rookery.domains` and takes in what `tools`, `*_tools`,
`resources` and `prompts` declare.
"""
