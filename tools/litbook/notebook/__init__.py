"""The document -> notebooks for Jupyter, and what stands in for the engine inside them."""
