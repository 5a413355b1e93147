//! Terminals: a real one inside, and no typing into anybody's.

use toolgate_contract::{ChildProcess, Streams, TerminalSize};
use toolgate_sandbox::process::ChildExit;

use super::scene::{attack, sh};

attack! {
    fn a_terminal_is_real_and_typing_for_others_is_refused(scene) {
        if !scene.has_namespaces() {
            return;
        }
        let line = format!("tty; stty size; read word; echo got $word; {} type evil", scene.attacker());
        let spec = sh(line).streams(Streams::Terminal(TerminalSize { rows: 12, columns: 34 }));
        scene.runtime.block_on(async {
            let child = scene.sandbox.launch(&scene.profile(), &spec).await.unwrap();
            child.write(b"hello\n").await.unwrap();
            let (text, _) = child.read_to_end().await;
            let text = String::from_utf8_lossy(&text);
            assert!(text.contains("/dev/pts/") && text.contains("12 34") && text.contains("got hello"), "{text}");
            assert!(text.contains("1 Operation not permitted"), "{text}");
            assert_eq!(child.wait().await.unwrap(), ChildExit::Code(1));
        });
    }
}
