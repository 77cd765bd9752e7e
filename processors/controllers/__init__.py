"""Controllers make the world match the image and report on the log what they found and did.

A controller compares desired with actual on every change and on a timer. Each effect looks first,
can be repeated, and names the generation that it satisfies; before each one the controller asks
whether this worker still leads. What is kept alike has a folder. Start reading with
`controller.py`.
"""
