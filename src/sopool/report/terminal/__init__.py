"""Tables and text for a terminal, made with Rich."""
