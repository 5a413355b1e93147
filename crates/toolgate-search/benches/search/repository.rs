//! Trees of a git repository, past and present, and of plain directories.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;

use tempfile::TempDir;
use toolgate_search::measure::{MeasuredFile, MeasuredTree, analyzed};

/// A file of a tree.
#[derive(Clone)]
pub(crate) struct TreeFile {
    pub(crate) path: String,
    pub(crate) bytes: Arc<Vec<u8>>,
    pub(crate) analyzed: MeasuredFile,
}

/// All files of a tree that a search sees.
pub(crate) struct Tree {
    pub(crate) files: Vec<TreeFile>,
}

impl Tree {
    pub(crate) fn indexed(&self) -> MeasuredTree {
        MeasuredTree::new(self.files.iter().map(|file| (file.path.clone(), file.analyzed.clone())))
    }

    /// The tree as files.
    pub(crate) fn written(&self) -> TempDir {
        let mut written = WrittenTree::new();
        written.become_tree(self);
        written.directory
    }
}

/// A directory that has one tree after another, as after `git switch`: only what differs is written.
pub(crate) struct WrittenTree {
    directory: TempDir,
    files: HashMap<String, Arc<Vec<u8>>>,
}

impl WrittenTree {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), files: HashMap::new() }
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn become_tree(&mut self, tree: &Tree) {
        let wanted: HashMap<&str, &TreeFile> = tree.files.iter().map(|file| (file.path.as_str(), file)).collect();
        let directory = self.directory.path();
        self.files.retain(|path, bytes| {
            let is_kept = wanted.get(path.as_str()).is_some_and(|file| file.bytes == *bytes);
            if !is_kept {
                std::fs::remove_file(directory.join(path)).unwrap();
            }
            is_kept
        });
        for file in &tree.files {
            if self.files.contains_key(&file.path) {
                continue;
            }
            let path = directory.join(&file.path);
            if path.is_dir() {
                std::fs::remove_dir_all(&path).unwrap();
            }
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, &*file.bytes).unwrap();
            self.files.insert(file.path.clone(), Arc::clone(&file.bytes));
        }
    }
}

/// A repository, or a directory without history.
pub(crate) struct Repository {
    pub(crate) name: String,
    path: PathBuf,
    has_history: bool,
}

impl Repository {
    pub(crate) fn open(path: &Path) -> Self {
        let path = path.canonicalize().unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let name = path.iter().rev().map(|name| name.to_string_lossy()).find(|name| name != "repo" && name != ".git");
        Self { name: name.unwrap_or_default().into_owned(), path, has_history: true }
    }

    pub(crate) fn plain(path: &Path) -> Self {
        Self { has_history: false, ..Self::open(path) }
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        let output = Command::new("git").arg("-C").arg(&self.path).args(arguments).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The newest tree.
    pub(crate) fn head(&self) -> Tree {
        match self.has_history {
            true => Blobs::new(self).tree(self, "HEAD"),
            false => Tree { files: plain_files(&self.path) },
        }
    }
}

fn is_visible(path: &str) -> bool {
    !path.split('/').any(|name| name.starts_with('.'))
}

fn plain_files(root: &Path) -> Vec<TreeFile> {
    let (mut left, mut files) = (vec![root.to_owned()], Vec::new());
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            let path = entry.path();
            let relative = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() && is_visible(&relative) => left.push(path),
                Ok(kind) if kind.is_file() && is_visible(&relative) => {
                    let bytes = std::fs::read(&path).unwrap();
                    files.push(TreeFile {
                        analyzed: analyzed(&relative, &bytes),
                        path: relative,
                        bytes: Arc::new(bytes),
                    });
                }
                _ => {}
            }
        }
    }
    files
}

/// Reads blobs, each once.
pub(crate) struct Blobs {
    process: Child,
    output: BufReader<ChildStdout>,
    known: HashMap<(String, String), TreeFile>,
}

impl Blobs {
    pub(crate) fn new(repository: &Repository) -> Self {
        let mut command = Command::new("git");
        command
            .arg("-C")
            .arg(&repository.path)
            .args(["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        Self { process, output, known: HashMap::new() }
    }

    /// The tree of a commit.
    pub(crate) fn tree(&mut self, repository: &Repository, commit: &str) -> Tree {
        let listed = repository.git(&["ls-tree", "-r", "-z", commit]);
        let mut files = Vec::new();
        for entry in listed.split('\0').filter_map(|entry| entry.split_once('\t')) {
            let (facts, path) = entry;
            let words: Vec<&str> = facts.split(' ').collect();
            if words[0].starts_with("100") && words[1] == "blob" && is_visible(path) {
                files.push(self.file(words[2], path));
            }
        }
        Tree { files }
    }

    fn file(&mut self, blob: &str, path: &str) -> TreeFile {
        let key = (blob.to_owned(), path.to_owned());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let bytes = self.read(blob);
        let file = TreeFile { path: path.to_owned(), analyzed: analyzed(path, &bytes), bytes: Arc::new(bytes) };
        self.known.insert(key, file.clone());
        file
    }

    fn read(&mut self, blob: &str) -> Vec<u8> {
        let input = self.process.stdin.as_mut().unwrap();
        writeln!(input, "{blob}").and_then(|()| input.flush()).unwrap();
        let mut head = String::new();
        self.output.read_line(&mut head).unwrap();
        let size = head.trim().rsplit(' ').next().and_then(|size| size.parse::<usize>().ok());
        // A repository may lack some of its blobs, such as large ones of a partial clone.
        let Some(size) = size else { return Vec::new() };
        let mut bytes = vec![0; size + 1];
        self.output.read_exact(&mut bytes).unwrap();
        bytes.pop();
        bytes
    }
}

impl Drop for Blobs {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
