"""Names that an author's function works with during a call: context, session, questions to the client, content."""
