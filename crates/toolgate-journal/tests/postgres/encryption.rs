//! Connections with TLS, to a real server on loopback with a certificate that the test makes.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;
use toolgate_journal::PostgresStore;

use crate::cluster::Cluster;

/// Whoever comes from the network must encrypt and know the password, which is bound to the server's certificate.
const ONLY_ENCRYPTED: &str = "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n";

fn openssl(directory: &Path, arguments: &str) {
    let output = Command::new("openssl").args(arguments.split(' ')).current_dir(directory).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Makes two authorities, `ca.pem` and `other.pem`, and a certificate for the host `localhost` by the first.
fn make_certificates(directory: &Path) {
    for name in ["ca", "other"] {
        let key = format!("-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {name}.key");
        openssl(directory, &format!("req -x509 {key} -days 30 -subj /CN={name} -out {name}.pem"));
    }
    openssl(
        directory,
        "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout server.key -subj /CN=server -out server.csr",
    );
    fs::write(directory.join("names"), "subjectAltName=DNS:localhost\n").unwrap();
    openssl(
        directory,
        "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile names -out server.pem",
    );
}

const ENCRYPTS: &str = "-c ssl=on -c ssl_cert_file=server.pem -c ssl_key_file=server.key";

/// A server with the certificate in this directory, which doesn't run yet.
fn encrypting(files: &Path, port: u16, settings: &'static str) -> Cluster {
    let cluster = Cluster::prepare(Some(port), settings);
    for name in ["server.pem", "server.key"] {
        cluster.put(name, fs::read(files.join(name)).unwrap());
    }
    cluster
}

/// A port on loopback that nobody uses.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Tries a connection by this host and query, and returns the reason if it is refused.
fn try_connecting(host: &str, port: u16, query: &str) -> Result<(), String> {
    let url = format!("postgres://toolgate:hunter2@{host}:{port}/toolgate{query}");
    let tried = PostgresStore::connect(&url).map(drop).map_err(|error| error.to_string());
    assert!(!tried.as_ref().is_err_and(|reason| reason.contains("hunter2")), "{tried:?}");
    tried
}

#[test]
fn an_encrypted_connection_checks_what_its_url_asks_for() {
    let (files, port) = (TempDir::new().unwrap(), free_port());
    make_certificates(files.path());
    let cluster = encrypting(files.path(), port, ENCRYPTS);
    cluster.put("pg_hba.conf", ONLY_ENCRYPTED);
    cluster.run();
    cluster.database("toolgate");
    cluster.execute("toolgate", "ALTER ROLE toolgate PASSWORD 'hunter2'");
    let file = |name: &str| files.path().join(name).display().to_string();
    let (ca, other) = (file("ca.pem"), file("other.pem"));

    let accepted = [
        ("localhost", format!("?sslmode=verify-full&sslrootcert={ca}")),
        ("localhost", format!("?sslrootcert={ca}")),
        ("127.0.0.1", format!("?sslmode=verify-ca&sslrootcert={ca}")),
        ("127.0.0.1", format!("?sslmode=require&sslrootcert={ca}")),
        ("127.0.0.1", "?sslmode=require".into()),
        ("127.0.0.1", "?sslmode=require&channel_binding=require".into()),
        ("127.0.0.1", "?sslmode=prefer".into()),
        ("127.0.0.1", String::new()),
    ];
    for (host, query) in accepted {
        assert_eq!(try_connecting(host, port, &query), Ok(()), "{host}{query}");
    }
    let missing = file("missing.pem");
    let refused = [
        ("127.0.0.1", format!("?sslmode=verify-full&sslrootcert={ca}"), "not valid for name"),
        ("localhost", format!("?sslmode=verify-full&sslrootcert={other}"), "certificate"),
        ("localhost", format!("?sslmode=verify-ca&sslrootcert={other}"), "certificate"),
        ("localhost", format!("?sslmode=require&sslrootcert={other}"), "certificate"),
        ("localhost", "?sslmode=verify-full".into(), "certificate"),
        ("localhost", format!("?sslmode=verify-full&sslrootcert={missing}"), &*missing),
        ("localhost", format!("?sslmode=verify-full&sslrootcert={}", file("names")), "no certificate in PEM"),
        ("127.0.0.1", "?sslmode=disable".into(), "no encryption"),
    ];
    for (host, query, words) in refused {
        let reason = try_connecting(host, port, &query).unwrap_err();
        assert!(reason.contains(words), "{host}{query}: {reason}");
    }
}

/// Whoever comes from the network proves who it is by a certificate alone.
#[test]
fn a_client_proves_who_it_is_by_its_certificate() {
    const ASKS: &str = "-c ssl=on -c ssl_cert_file=server.pem -c ssl_key_file=server.key -c ssl_ca_file=ca.pem";
    let (files, port) = (TempDir::new().unwrap(), free_port());
    make_certificates(files.path());
    for (name, authority) in [("toolgate", "ca"), ("stranger", "other")] {
        let key = format!("-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {name}.key");
        openssl(files.path(), &format!("req {key} -subj /CN=toolgate -out {name}.csr"));
        let signed = format!("-CA {authority}.pem -CAkey {authority}.key -CAcreateserial -days 30 -extfile names");
        openssl(files.path(), &format!("x509 -req -in {name}.csr {signed} -out {name}.pem"));
    }
    let cluster = encrypting(files.path(), port, ASKS);
    cluster.put("ca.pem", fs::read(files.path().join("ca.pem")).unwrap());
    cluster.put("pg_hba.conf", "local all all trust\nhostssl all all 127.0.0.1/32 cert\n");
    cluster.run();
    cluster.database("toolgate");
    let file = |name: &str| files.path().join(name).display().to_string();
    let as_client = |certificate: &str, key: &str| {
        let check = format!("?sslmode=verify-full&sslrootcert={}", file("ca.pem"));
        try_connecting("localhost", port, &format!("{check}&sslcert={}&sslkey={}", file(certificate), file(key)))
    };
    assert_eq!(as_client("toolgate.pem", "toolgate.key"), Ok(()));
    let refused = [
        ("stranger.pem", "stranger.key", "UnknownCA"),
        ("toolgate.pem", "stranger.key", "toolgate.pem"),
        ("toolgate.pem", "missing.key", "missing.key"),
        ("toolgate.key", "toolgate.key", "no certificate in PEM"),
        ("toolgate.pem", "toolgate.pem", "no private key in PEM"),
    ];
    for (certificate, key, words) in refused {
        let reason = as_client(certificate, key).unwrap_err();
        assert!(reason.contains(words), "{certificate}, {key}: {reason}");
    }
    let reason = try_connecting("localhost", port, "?sslmode=require").unwrap_err();
    assert!(reason.contains("certificate"), "without one: {reason}");
}

#[test]
fn a_server_that_cannot_encrypt_is_refused_where_encryption_is_required() {
    let port = free_port();
    let cluster = Cluster::prepare(Some(port), "");
    cluster.run();
    cluster.database("toolgate");
    for query in ["", "?sslmode=prefer", "?sslmode=disable"] {
        assert_eq!(try_connecting("127.0.0.1", port, query), Ok(()), "{query}");
    }
    for query in ["?sslmode=require", "?sslmode=verify-ca", "?sslmode=verify-full"] {
        let reason = try_connecting("127.0.0.1", port, query).unwrap_err();
        assert!(reason.contains("server does not support TLS"), "{query}: {reason}");
    }
}

/// Such a server encrypts, but only in a way that is no longer safe.
#[test]
fn a_server_with_outdated_encryption_is_used_in_plain_text_only_where_encryption_is_just_preferred() {
    const OUTDATED: &str = "-c ssl=on -c ssl_cert_file=server.pem -c ssl_key_file=server.key \
        -c ssl_min_protocol_version=TLSv1 -c ssl_max_protocol_version=TLSv1.1";
    let (files, port) = (TempDir::new().unwrap(), free_port());
    make_certificates(files.path());
    let cluster = encrypting(files.path(), port, OUTDATED);
    cluster.run();
    cluster.database("toolgate");
    for query in ["", "?sslmode=prefer", "?sslmode=disable"] {
        assert_eq!(try_connecting("127.0.0.1", port, query), Ok(()), "{query}");
    }
    let reason = try_connecting("127.0.0.1", port, "?sslmode=require").unwrap_err();
    assert!(reason.contains("TLS handshake"), "{reason}");
}
