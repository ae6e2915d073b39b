"""A section as a list of blocks, and a lecture as pages of sections: data, which back ends walk."""
