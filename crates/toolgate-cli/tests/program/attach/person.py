# Attaches to the only process there is, twice, each time on a terminal of another size.
import fcntl, os, pty, select, signal, struct, subprocess, sys, termios


def resize(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def attach(rows, columns):
    ours, theirs = pty.openpty()
    resize(ours, rows, columns)
    person = subprocess.Popen([sys.argv[1], "attach"], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    return person, ours


seen = b""


def until(terminal, words):
    """Reads up to these words, and leaves what follows for the next."""
    global seen
    while words not in seen:
        if not select.select([terminal], [], [], 120)[0]:
            sys.exit(f"waited in vain for {words}: {seen}")
        try:
            piece = os.read(terminal, 4096)
        except OSError:
            piece = b""
        if not piece:
            sys.exit(f"ended before {words}: {seen}")
        seen += piece
    seen = seen.split(words, 1)[1]


person, terminal = attach(30, 100)
until(terminal, b"Ctrl-] detaches")
until(terminal, b">>> ")
os.write(terminal, b"import os; print('size', *os.get_terminal_size())\r")
until(terminal, b"size 100 30")
resize(terminal, 40, 120)
person.send_signal(signal.SIGWINCH)
os.write(terminal, b"import time; all(time.sleep(0.05) is None for _ in iter(lambda: os.get_terminal_size()[0], 120))\r")
until(terminal, b">>> ")
os.write(terminal, b"print('size', *os.get_terminal_size())\r")
until(terminal, b"size 120 40")
os.write(terminal, b"\x1d")
until(terminal, b"the process keeps running")
if person.wait(120) != 0:
    sys.exit("letting go is no failure")

seen = b""
person, terminal = attach(24, 80)
until(terminal, b"size 120 40")
os.write(terminal, b"exit(7)\r")
until(terminal, b"ended with code 7")
if person.wait(120) != 7:
    sys.exit("the code of the process is the code of the program")
print("detached, came back, ended")
