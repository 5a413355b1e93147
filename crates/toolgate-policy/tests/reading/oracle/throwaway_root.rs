//! Runs commands by real bash in a throw-away root, `root.sh`, and tells what they changed there.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

const SCRIPT: &str = include_str!("root.sh");

/// Namespaces of its own: users, mounts, network, processes, IPC, host name.
const UNSHARE: &[&str] = &["unshare", "--map-root-user", "--mount", "--net", "--pid", "--ipc", "--uts", "--fork"];

/// Root gives up its rights first: as the owner of the machine's files it could change settings of the kernel from
/// within its own namespaces.
const AS_NOBODY: &[&str] = &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

/// Whether this machine lets its users make namespaces.
pub(crate) fn is_possible() -> bool {
    let words = [prefix(), &["true"]].concat();
    let status = Command::new(words[0]).args(&words[1..]).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

fn prefix() -> &'static [&'static str] {
    static WORDS: std::sync::LazyLock<Vec<&str>> = std::sync::LazyLock::new(|| {
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        if is_root { [AS_NOBODY, UNSHARE].concat() } else { UNSHARE.to_vec() }
    });
    &WORDS
}

/// Runs the commands in a fresh root. Returns what changed, by the number of the command; after all of them unless
/// `each` is looked after.
fn changes(commands: &[&str], each: bool) -> Vec<(Option<usize>, Vec<String>)> {
    let words = [prefix(), &["bash", "-c", SCRIPT, "root", if each { "each" } else { "all" }]].concat();
    let mut child = Command::new(words[0])
        .args(&words[1..])
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("`unshare` starts");
    let input: Vec<u8> = commands.iter().flat_map(|command| command.bytes().chain([0])).collect();
    let mut pipe = child.stdin.take().expect("it was asked for");
    let writer = std::thread::spawn(move || pipe.write_all(&input));
    let output = child.wait_with_output().expect("the root is left");
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(told.ends_with(&format!("ran {}\n", commands.len())), "the root failed: {told}\n{stderr}");
    writer.join().expect("no panic").expect("the root reads all commands");
    let mut changed: Vec<(Option<usize>, Vec<String>)> = Vec::new();
    for line in told.lines().filter(|line| !line.starts_with("ran ")) {
        match (line.strip_prefix("changed "), changed.last_mut()) {
            (Some(number), _) => changed.push((number.parse().ok(), Vec::new())),
            (None, Some((_, lines))) => lines.push(line.to_owned()),
            (None, None) => {}
        }
    }
    changed
}

/// The commands that change something, each with what it changed. They run together; only where something changed, they
/// run again in a fresh root, and each is looked after.
pub(crate) fn that_change_something(commands: &[&str]) -> Vec<(String, Vec<String>)> {
    if changes(commands, false).is_empty() {
        return Vec::new();
    }
    let found = changes(commands, true).into_iter();
    found.map(|(number, lines)| (number.map_or("all of them", |number| commands[number]).to_owned(), lines)).collect()
}
