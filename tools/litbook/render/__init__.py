"""Record -> text. `page`, `terminal` and `notebook` do not know each other; they share the leaves
`values`, `prose` and `bibliography`. Nothing here executes a lecture or imports torch.
"""
