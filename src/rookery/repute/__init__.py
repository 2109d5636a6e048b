"""What agents have done, good and bad: events that every part of the product adds to, and a score is made from."""
