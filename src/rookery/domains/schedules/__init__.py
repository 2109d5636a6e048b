"""Work that agents do at set times: what is due when, who has to agree first, and what came of it."""
