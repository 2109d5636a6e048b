"""Sessions of agents, for those who look into them, and for the people who open and steer them."""
