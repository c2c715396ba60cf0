"""What both halves stand on: the decision (`placement`), what a process is made of (`process`), and what they send each
other (`wire`); and what people run beside them: `kubectl` and `compare`. Their `terminal` is that of both halves.
"""
