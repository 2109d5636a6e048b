"""The tools, resources and prompts that the public conformance suite calls for by name. Only its tests load them."""
