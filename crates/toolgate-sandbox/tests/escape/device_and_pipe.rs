//! Things that aren't files: a pipe would wait for ever, a device would never end.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;

use toolgate_contract::ErrorCode;

use crate::with_each_way;

#[test]
fn what_is_not_a_file_is_refused_at_once() {
    with_each_way(|scene, way| {
        let ws = scene.workspace();
        assert!(Command::new("mkfifo").arg(ws.join("pipe")).status().unwrap().success());
        let _socket = UnixListener::bind(ws.join("socket")).unwrap();
        for path in ["pipe", "socket", "sub", "."] {
            assert_eq!(scene.read(way, path).unwrap_err().code, ErrorCode::NotAFile, "{path}");
        }
        symlink("/dev/zero", ws.join("zero")).unwrap();
        assert_eq!(scene.read(way, "zero").unwrap_err().code, ErrorCode::PathOutsideWorkspace);
    });
}

#[test]
fn a_device_in_the_workspace_is_refused() {
    with_each_way(|scene, way| {
        let zero = scene.workspace().join("zero");
        let made = Command::new("mknod").arg(&zero).args(["c", "1", "5"]).stderr(std::process::Stdio::null()).status();
        // Only root can make one; an ordinary user's workspace can't have one either.
        if made.is_ok_and(|status| status.success()) {
            assert_eq!(scene.read(way, "zero").unwrap_err().code, ErrorCode::NotAFile);
        }
    });
}
