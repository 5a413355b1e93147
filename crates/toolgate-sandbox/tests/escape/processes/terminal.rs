//! Terminals: a real one inside, and no typing into anybody's.

use toolgate_sandbox::process::{ChildExit, CommandSpec, PtySize, StandardStreams};

use super::scene::attack;

attack! {
    fn a_terminal_is_real_and_typing_for_others_is_refused(scene) {
        if !scene.has_namespaces() {
            return;
        }
        let line = format!("tty; stty size; read word; echo got $word; {} type evil", scene.attacker());
        let command = CommandSpec::shell(line).streams(StandardStreams::Terminal(PtySize { rows: 12, columns: 34 }));
        scene.runtime.block_on(async {
            let mut running = scene.sandbox.spawn(&scene.profile(), &command).await.unwrap();
            let terminal = running.terminal.take().unwrap();
            assert_eq!(terminal.write(b"hello\n").await.unwrap(), 6);
            let mut text = Vec::new();
            let mut buffer = [0; 1024];
            loop {
                match terminal.read(&mut buffer).await.unwrap() {
                    0 => break,
                    length => text.extend_from_slice(&buffer[..length]),
                }
            }
            let text = String::from_utf8_lossy(&text);
            assert!(text.contains("/dev/pts/") && text.contains("12 34") && text.contains("got hello"), "{text}");
            assert!(text.contains("1 Operation not permitted"), "{text}");
            assert_eq!(running.wait().await.unwrap(), ChildExit::Code(1));
        });
    }
}
