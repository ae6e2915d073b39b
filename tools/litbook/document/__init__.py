"""Record and text -> what a reader gets, as data. It holds no HTML and prints nothing: back ends walk it."""
