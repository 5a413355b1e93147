# Runs commands in a throw-away root and prints what they changed. Runs as the first process of new user, mount, network,
# process, IPC and UTS namespaces, as a user without rights outside. Commands come on standard input, each ended by a NUL.
# With the argument `each`, it looks after every command, and prints the number of each that changed something.
set -eu
export LC_ALL=C PATH=/usr/sbin:/usr/bin:/sbin:/bin

# --- The root: a fresh file system in memory, with the system's programs beneath it, read-only ------------------------

mount -t tmpfs -o size=256m,mode=755 none /mnt
cd /mnt
mkdir -p proc dev/shm tmp var/tmp run home/me/bin home/me/project old
chmod 1777 tmp var/tmp dev/shm
for directory in usr etc bin sbin lib lib32 lib64; do
    if [ -L "/$directory" ]; then
        cp -P "/$directory" "$directory"
    elif [ -d "/$directory" ]; then
        mkdir "$directory"
        mount --rbind -o ro "/$directory" "$directory"
    fi
done
for device in null zero full random urandom; do
    : > "dev/$device"
    mount --bind "/dev/$device" "dev/$device"
done
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr
mount -t proc none proc
pivot_root . old
umount -l /old
rmdir /old

# --- What commands find there -----------------------------------------------------------------------------------------

export HOME=/home/me
cd /home/me/project
cat > evil <<'END'
#!/bin/sh
touch "/home/me/project/pwned-$$" "/tmp/pwned-$$"
END
chmod 755 evil
cp evil /home/me/bin/evil
cp evil /home/me/bin/git-evil
printf '%s\n' '-v a[$(./evil)]' second third > f
printf '%s\n' one two three > a.txt
printf '%s\n' one 2 three four > b.txt
printf 'a\nb\nc\n' > list
printf '%s\n' '--plugin' './evil' '-o' 'out' > opts
printf '%s\n' '{"name": "x", "version": "1.0.0", "list": [1, 2]}' > a.json
cp a.json package.json
printf '[package]\nname = "x"\nversion = "0.1.0"\n' > Cargo.toml
printf '# Title\n\nText.\n' > README.md
mkdir src docs sub
printf 'fn main() {}\n' > src/main.rs
printf 'pub fn x() {}\n' > src/lib.rs
printf 'x\n' > docs/x.md
cat > p <<'END'
--- /dev/null
+++ b/patched.txt
@@ -0,0 +1 @@
+patched
END
cp /bin/true a.o
tar -cf a.tar a.txt src
tar -czf a.tgz a.txt
gzip -k a.txt
bzip2 -k a.txt
xz -k b.txt
ar rc a.a a.o 2> /dev/null || cp a.tar a.a
# Names that a pattern makes options, files of options, or code.
touch -- '-rf' '-v' '-z' '-o out' '--output=pwned' '--apply' '--compress' '-I evil' '--use-compress-program=evil' \
    '--checkpoint-action=exec=evil' '@opts' 'x y' ';touch pwned' '$(touch pwned)' 'a[$(touch pwned)]' '--files0-from=list'
find . -exec touch -h -d 2020-01-01 {} +
git config --global user.name me
git config --global user.email me@example.org
git config --global init.defaultBranch main
git config --global alias.evil '!evil'
git init -q .
git add -A
git commit -qm first
printf 'more\n' >> b.txt
touch -d 2020-01-02 b.txt
git commit -qam second
git tag v1.0
git branch topic HEAD~1
printf 'changed\n' >> a.txt
touch -d 2020-01-03 a.txt
git status > /dev/null

# --- Running ----------------------------------------------------------------------------------------------------------

# Every file and link with its size, mode and times of change, every directory with its mode. A command can set neither
# the time of the last change of an inode nor reset it.
listing() {
    find / -xdev ! -type c '(' -type d -printf '%p %y %m\n' -o -printf '%p %y %m %s %T@ %C@ %l\n' ')' | sort
}
before=$(listing)
look() {
    after=$(listing)
    if [ "$before" != "$after" ]; then
        echo "changed $1"
        diff <(echo "$before") <(echo "$after") | grep '^[<>]' || true
        before=$after
    fi
}
ulimit -c 0 -f 40000 -t 5 -n 256
number=0
while IFS= read -r -d '' command; do
    env -i PATH=/usr/bin:/bin:/usr/sbin:/sbin:/home/me/bin HOME=/home/me TERM=dumb LC_ALL=C.UTF-8 \
        x='-v a[$(./evil)]' y='a[$(./evil)]' name='-o out' file='; ./evil' \
        timeout -s KILL 1 bash --norc --noprofile -c "$command" < /dev/null > /dev/null 2>&1 || true
    if [ "${1-}" = each ]; then
        look "$number"
    fi
    number=$((number + 1))
done
look all
echo "ran $number"
