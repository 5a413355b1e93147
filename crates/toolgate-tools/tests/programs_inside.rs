//! What programs do beyond reading and writing: debuggers and sanitizers trace processes, and directories get times.
#![allow(clippy::disallowed_methods, reason = "tests make and look at files of their own")]

use std::process::Command;

use serde_json::json;
use toolgate_testkit::{TestWorkspace, skip};

/// A program, what is run, and what it prints.
const TRACES: &[(&str, &str, &str)] = &[
    ("strace", "strace -f -e trace=execve sh -c 'true; /bin/true' 2>&1", "execve(\"/bin/true\""),
    ("gdb", "gcc -g -o leak leak.c && gdb -q -batch -ex 'break main' -ex run -ex bt ./leak 2>&1", "#0  main"),
    ("gcc", "gcc -g -fsanitize=address -o a leak.c && ./a overflow 2>&1", "AddressSanitizer: heap-buffer-overflow"),
    ("gcc", "gcc -g -fsanitize=leak -o l leak.c && ./l 2>&1", "LeakSanitizer: detected memory leaks"),
    ("gcc", "gcc -g -fsanitize=thread -o t race.c -lpthread && ./t 2>&1", "ThreadSanitizer: data race"),
];

const LEAK: &str =
    "#include <stdlib.h>\nint main(int c, char **v) { char *p = malloc(10); if (c > 1) p[10] = 1; p = 0; return 0; }\n";
const RACE: &str = "#include <pthread.h>\nint x; void *f(void *a) { x++; return a; }\n\
                    int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); x++; pthread_join(t, 0); return 0; }\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_command_traces_its_own_processes() {
    let world = TestWorkspace::new(toolgate_tools::all(), "preset = 'full'").confined();
    world.file("leak.c", LEAK).file("race.c", RACE);
    for (program, command, words) in TRACES {
        if Command::new(program).arg("--version").output().is_err() {
            skip("program-missing", &format!("`{program}` isn't installed"));
            continue;
        }
        let payload = world.run_script(command, json!({})).await;
        let said = payload["stdout"].as_str().unwrap_or_default().to_owned();
        // Without a memory cgroup the memory of each process is limited; then the reply has to say so.
        let is_explained = payload["denied"].to_string().contains("shadow memory");
        assert!(said.contains(words) || is_explained, "{command}: {payload}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_keeps_the_time_that_a_command_gives_it() {
    let world = TestWorkspace::new(toolgate_tools::all(), "preset = 'full'").confined();
    world.file("there/a", "a\n").file("there/deep/b", "b\n");
    let time = |path: &str| {
        let found = Command::new("stat").args(["-c", "%y", path]).current_dir(world.path()).output().unwrap();
        String::from_utf8(found.stdout).unwrap()[..10].to_owned()
    };
    let before = time("there");
    let command =
        "mkdir -p made/in && echo x > made/in/x && touch -d 2001-02-03 made/in made there && cp -a there copy";
    let payload = world.run_script(command, json!({})).await;
    assert_eq!(payload["exit_code"], json!(0), "{payload}");
    for path in ["made", "made/in", "there", "copy"] {
        assert_eq!(time(path), "2001-02-03", "{path}");
    }
    assert_eq!(time("there/deep"), before);
    let undone = world.perform("undo", json!({ "call": last_change(&world) })).await;
    assert!(undone.ok, "{:?}", undone.error);
    assert_eq!((time("there"), world.path().join("made").exists()), (before, false));
}

fn last_change(world: &TestWorkspace) -> String {
    use toolgate_contract::EventPayload;
    let changing = |event: &toolgate_contract::Event| matches!(event.payload, EventPayload::FilesChanging { .. });
    world.events().into_iter().rfind(changing).unwrap().tool_call_id.unwrap()
}
