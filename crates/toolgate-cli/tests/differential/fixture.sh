# Makes the workspace that every command of the corpus starts in.
set -eu
export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z' GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=Ada GIT_AUTHOR_EMAIL=ada@example.org GIT_COMMITTER_NAME=Ada GIT_COMMITTER_EMAIL=ada@example.org
git init -q -b main .
git config user.name Ada
git config user.email ada@example.org
mkdir -p src/deep/er docs data 'with space' ro links empty
printf 'def add(a, b):\n    return a + b\n\n\nprint(add(1, 2))\n' > src/main.py
printf 'import sys\n\n\ndef shout(text):\n    return text.upper()\n' > src/lib.py
printf 'def test_add():\n    assert 1 + 1 == 2\n' > src/test_main.py
printf 'deep\n' > src/deep/er/file.txt
printf 'const x = 1;\nconsole.log(x);\n' > src/app.js
printf '#include <stdio.h>\nint main(void) { puts("hello"); return 0; }\n' > src/hello.c
printf '# Title\n\nSome text with words.\n\n- one\n- two\n' > docs/readme.md
printf 'name,age\nada,36\nbob,41\ncleo,29\n' > data/people.csv
printf '{"name": "ada", "tags": ["a", "b"], "n": 3}\n' > data/one.json
seq 1 100 > data/numbers.txt
printf 'banana\napple\ncherry\napple\n' > data/fruit.txt
printf '\000\001\002\377binary\n' > data/raw.bin
printf 'all: out.txt\nout.txt: data/fruit.txt\n\tsort $< > $@\nclean:\n\trm -f out.txt\n.PHONY: all clean\n' > Makefile
printf '#!/bin/sh\necho "script: $1"\nexit 3\n' > script.sh
chmod 755 script.sh
printf 'in a space\n' > 'with space/a file.txt'
printf 'read only\n' > ro/file.txt
ln -s ../src/main.py links/main
ln -s nowhere links/broken
ln -s ../src links/src
printf 'build/\n*.o\n*.pyc\n__pycache__/\nout.txt\n' > .gitignore
git add .
git commit -qm 'first'
git tag v1
git checkout -q -b topic
printf 'topic\n' > topic.txt
printf 'grape\n' >> data/fruit.txt
git add .
git commit -qm 'topic work'
git checkout -q main
printf 'plum\n' >> data/fruit.txt
git commit -qam 'second'
printf 'def add(a, b):\n    return b + a\n\n\nprint(add(1, 2))\n' > src/main.py
printf 'untracked\n' > notes.txt
mkdir build
printf 'object\n' > build/a.o
ln data/numbers.txt data/linked.txt
chmod 444 ro/file.txt
find . -name .git -prune -o -print | xargs -d '\n' touch -h -d '2023-05-06T07:08:09Z'
git update-index -q --refresh || true
