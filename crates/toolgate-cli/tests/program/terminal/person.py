# Runs a program on a terminal of its own and plays the person before it: waits for words, says lines, as told by these
# lines. `wait WORDS` reads up to these words, `type LINE` types a line, `run COMMAND` runs a command elsewhere until it works.
import fcntl, os, pty, select, subprocess, sys, termios, time

script, program = sys.argv[1].split("\n"), sys.argv[2:]
ours, theirs = pty.openpty()
person = subprocess.Popen(program, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
                          preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
os.close(theirs)
seen = ""


def more():
    if not select.select([ours], [], [], 120)[0]:
        return ""
    try:
        return os.read(ours, 4096).decode(errors="replace")
    except OSError:
        return ""


for line in script:
    verb, _, words = line.partition(" ")
    if verb == "type":
        os.write(ours, words.encode() + b"\r")
    elif verb == "run":
        while subprocess.run(words, shell=True, stderr=subprocess.DEVNULL).returncode:
            time.sleep(0.05)
    else:
        while words not in seen:
            piece = more()
            if not piece:
                sys.exit(f"waited in vain for `{words}`: {seen}")
            seen += piece
        seen = seen.split(words, 1)[1]
while piece := more():
    seen += piece
sys.exit(person.wait(120))
