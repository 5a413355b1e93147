//! What a call may request up front: a permission that its tool declares, or exactly one effect beyond what the tool
//! states. On the wire it is a string, such as `fs.read`, `net.connect=example.com:443`, `fs.write=/var/cache/app` or
//! `unsandboxed`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Effect, Permission};

/// A right that a call requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Right {
    /// A permission that the tool declares.
    Permission(Permission),
    /// Connecting to this host at this port, from any process of the command.
    Connect {
        /// Name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// Changing this path outside the workspace, and everything beneath it.
    Write {
        /// An absolute path.
        path: String,
    },
    /// Running without a sandbox.
    Unsandboxed,
}

impl Right {
    /// The right that permits a missing effect; none if no call can request it.
    pub fn of(effect: &Effect) -> Option<Self> {
        match effect {
            Effect::Connect { host, port } => Some(Self::Connect { host: host.clone(), port: *port }),
            Effect::Write { path } if path.starts_with('/') => Some(Self::Write { path: path.clone() }),
            Effect::Unsandboxed { .. } => Some(Self::Unsandboxed),
            _ => None,
        }
    }
}

impl From<Permission> for Right {
    fn from(permission: Permission) -> Self {
        match permission {
            Permission::Unsandboxed => Self::Unsandboxed,
            other => Self::Permission(other),
        }
    }
}

impl fmt::Display for Right {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Permission(permission) => permission.fmt(f),
            Self::Connect { host, port } => write!(f, "net.connect={host}:{port}"),
            Self::Write { path } => write!(f, "fs.write={path}"),
            Self::Unsandboxed => f.write_str(Permission::Unsandboxed.as_str()),
        }
    }
}

impl FromStr for Right {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let unknown = || {
            format!(
                "there is no right `{word}`; write a permission such as `fs.read`, `net.connect=HOST:PORT`, \
                 `fs.write=/PATH` or `unsandboxed`"
            )
        };
        match word.split_once('=') {
            Some(("net.connect", host)) if !host.is_empty() && !host.contains(':') => {
                return Err(format!("`{word}` names no port; add it: `net.connect={host}:443`"));
            }
            None => Permission::ALL.iter().find(|known| known.as_str() == word).map(|known| (*known).into()),
            Some(("net.connect", to)) => to.rsplit_once(':').and_then(|(host, port)| {
                let port = port.parse().ok().filter(|port| *port > 0)?;
                (!host.is_empty()).then(|| Self::Connect { host: host.to_owned(), port })
            }),
            Some(("fs.write", path)) if path.starts_with('/') => Some(Self::Write { path: path.to_owned() }),
            Some(_) => None,
        }
        .ok_or_else(unknown)
    }
}

impl Serialize for Right {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Right {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_words() {
        for word in
            ["fs.read", "git.write", "unsandboxed", "net.connect=a.example:443", "net.connect=::1:80", "fs.write=/a b"]
        {
            assert_eq!(word.parse::<Right>().map(|right| right.to_string()).as_deref(), Ok(word));
        }
        for word in ["", "root", "net.connect=", "net.connect=:1", "net.connect=a:0", "fs.write=a", "fs.read=/a"] {
            assert!(word.parse::<Right>().unwrap_err().contains("there is no right"), "{word}");
        }
        let portless = "net.connect=a.example".parse::<Right>().unwrap_err();
        assert!(portless.contains("names no port") && portless.contains("net.connect=a.example:443"), "{portless}");
    }
}
