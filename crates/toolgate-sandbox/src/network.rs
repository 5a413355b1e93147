//! The way out of a sandbox: a list of hosts and nothing else, held from outside, with no helper inside and no proxy
//! variables.
//!
//! ```text
//!  inside: a network of its own, where every address      │  here, on the host's side
//!          is this very machine                           │
//!  which address has ok.example? ──▶ :53 (a socket that ──┼─▶ dns     198.18.0.2, if the border lets the name pass
//!                                         came out)       │
//!  connect 198.18.0.2:443 ─────────▶ :443 (likewise) ─────┼─▶ relay   198.18.0.2 is ok.example; it greets as ok.example;
//!                                                         │           looked up here, address judged, then connected
//! ```
//!
//! Where requests can be read, each of them is held against the name, not only the first of a connection. The border
//! (policy) is asked about every name and every address that a name leads to. Nothing that a command says is
//! looked up before its name has passed, so no name can carry data out. What isn't let through is noted, word for word.

mod dns;
mod doors;
mod greeting;
mod meant;
mod names;
mod notes;
mod question;
mod relay;
mod requests;
mod resolver;
mod trial;

pub(crate) use doors::{Doors, NAMESERVER, doors};
pub(crate) use notes::Notes;
pub(crate) use relay::Relay;
pub use resolver::{Resolver, SystemResolver};
pub use trial::try_list;
