"""Who there is and what they may do: tenants, people, projects, agents, profiles, bundles, grants, tokens."""

TITLE = "Identity"
