//! Files that a command sees with another content than the workspace's. They lie in the upper directory of its overlay from the
//! start, so the command can read, replace and remove them like any other. What it left as it was is taken away again before
//! its changes are looked at.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use toolgate_contract::Substitute;

/// The substitutes in the layers of one command.
#[derive(Default)]
pub(crate) struct PlacedSubstitutes {
    placed: Vec<(PathBuf, Substitute)>,
    /// Directories of the layers that the workspace doesn't have, outermost first.
    made: Vec<PathBuf>,
}

impl PlacedSubstitutes {
    /// Puts substitutes into the layers, before they are mounted. `roots` are the directories of the roots, in their order.
    pub(crate) fn place(
        layers: &[(usize, PathBuf)],
        roots: &[PathBuf],
        substitutes: &[Substitute],
    ) -> io::Result<Self> {
        let (mut placed, mut made) = (Vec::new(), Vec::new());
        for substitute in substitutes {
            let place = &substitute.place;
            let Some((_, upper)) = layers.iter().find(|(root, _)| *root == place.root) else { continue };
            let Some(lower) = roots.get(place.root) else { continue };
            made.extend(make_directories(upper, lower, &place.beneath(Path::new("")))?);
            let path = place.beneath(upper);
            write_new(&path, &substitute.content, substitute.mode)?;
            placed.push((path, substitute.clone()));
        }
        Ok(Self { placed, made })
    }

    /// Removes what the command left as it was. Where it changed a file to which lines were added, those lines are removed.
    pub(crate) fn take_away(&mut self) -> io::Result<()> {
        for (path, substitute) in std::mem::take(&mut self.placed) {
            let is_file = fs::symlink_metadata(&path).is_ok_and(|found| found.is_file());
            if !is_file {
                continue;
            }
            let now = fs::read(&path)?;
            if now == *substitute.content {
                fs::remove_file(&path)?;
            } else if let Some(own) = substitute.added.as_deref().and_then(|added| without(&now, added)) {
                fs::write(&path, own)?;
            }
        }
        for directory in std::mem::take(&mut self.made).into_iter().rev() {
            match fs::remove_dir(&directory) {
                Err(error) if ![io::ErrorKind::NotFound, io::ErrorKind::DirectoryNotEmpty].contains(&error.kind()) => {
                    return Err(error);
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Makes the parents of a path in a layer, with the modes that they have in the lower directory. Returns those that the lower
/// directory doesn't have.
fn make_directories(upper: &Path, lower: &Path, path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut made = Vec::new();
    let parents: Vec<&Path> = path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()).collect();
    for parent in parents.into_iter().rev() {
        let mode = match fs::symlink_metadata(lower.join(parent)) {
            Ok(below) if below.is_dir() => Some(below.mode() & 0o7777),
            Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        match fs::DirBuilder::new().mode(0o700).create(upper.join(parent)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            created => created?,
        }
        fs::set_permissions(upper.join(parent), fs::Permissions::from_mode(mode.unwrap_or(0o755)))?;
        made.extend(mode.is_none().then(|| upper.join(parent)));
    }
    Ok(made)
}

fn write_new(path: &Path, content: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(content)?;
    file.set_permissions(fs::Permissions::from_mode(mode & 0o777))
}

/// A content without these lines; none if they aren't in it.
fn without(content: &[u8], lines: &[u8]) -> Option<Vec<u8>> {
    let start = content.windows(lines.len()).position(|window| window == lines)?;
    Some([&content[..start], &content[start + lines.len()..]].concat())
}
