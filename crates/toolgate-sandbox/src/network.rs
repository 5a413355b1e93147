//! The sandbox's way out: an allow list of hosts, enforced by a proxy on the host's side. Nothing of the proxy runs
//! inside the sandbox, and no command has to know of it by a variable such as `http_proxy`.
//!
//! ```text
//!  inside: a network namespace in which      │  outside: the host
//!  every address is local                    │
//!                                            │
//!  resolve ok.example ────▶ listener :53 ────┼─▶ dns     the egress policy allows the name: 198.18.0.2 stands for it
//!                                            │
//!  connect 198.18.0.2:443 ▶ listener :443 ───┼─▶ proxy   198.18.0.2 is ok.example, and the ClientHello names it, too;
//!                                            │           the resolver looks it up, the policy allows the address:
//!                                            │           connected
//! ```
//!
//! The listeners are sockets that were made inside and handed out. The egress policy decides on every name and on every
//! address that a name resolves to. A name is looked up only after the policy has allowed it, so no data leaves in a DNS
//! query. On a plain HTTP connection every request is checked, not only the first one. Each denial is kept with its reason.

mod allowed_host;
mod client_hello;
mod denial_log;
mod dns;
mod dns_message;
mod http_head;
mod http_requests;
mod listeners;
mod proxy;
mod resolver;
mod self_test;
mod sniff;
mod synthetic_addresses;

pub(crate) use denial_log::DenialLog;
pub(crate) use listeners::{ListenerAddresses, NAMESERVER, listener_addresses};
pub(crate) use proxy::EgressProxy;
pub use resolver::{Resolver, SystemResolver};
pub use self_test::test_host_list;
