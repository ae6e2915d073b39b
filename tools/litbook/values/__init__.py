"""How a recorded value is written and drawn: units, digits, cards, bits, storage."""
