"""A Run in the formats of CI systems: Markdown, JUnit's XML, SARIF and the annotations of GitHub Actions.

Design constraint: text from a peer is data in these formats, too, so markup of each format is escaped.
"""
