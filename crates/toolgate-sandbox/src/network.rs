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

mod allowed_host;
mod client_hello;
mod denial_log;
mod dns;
mod dns_message;
mod http_head;
mod listeners;
mod proxy;
mod resolver;
mod self_test;
mod synthetic_addresses;

pub(crate) use denial_log::DenialLog;
pub(crate) use listeners::{ListenerAddresses, NAMESERVER, listener_addresses};
pub(crate) use proxy::EgressProxy;
pub use resolver::{Resolver, SystemResolver};
pub use self_test::test_host_list;
