"""The document -> HTML. Each module walks data of `document`; none reads HTML that another one wrote."""
