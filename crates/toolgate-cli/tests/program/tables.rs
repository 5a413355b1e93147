//! Tables on a real terminal: never wider than it, nothing left out, and one line a row where a program reads.

use std::process::Stdio;

use unicode_width::UnicodeWidthStr;

use crate::chat::person::Person;
use crate::world::{PROGRAM, World};

const TASK: &str = "Make the tests pass, and tell me which of them had failed before: 整理して報告する";

fn world_with_runs() -> World {
    let world = World::new().file("script.toml", "[[turns]]\ntext = \"Done.\"\n");
    let said = world.run(&["run", TASK, "--model", "scripted:script.toml"]);
    assert_eq!(said.code, 0, "{said:?}");
    world.run(&["call", "list"]);
    world.run(&["inbox", "add", TASK]);
    world
}

/// What a person sees on a terminal of this width, when the program has ended.
fn seen(world: &World, columns: u16, args: &[&str]) -> String {
    let mut person = Person::sits_at(world, (200, columns), args);
    person.waits_until_ended();
    person.sees()
}

#[test]
fn tables_fit_the_terminal_and_leave_nothing_out() {
    let world = world_with_runs();
    let run = world.run(&["--json", "runs", "list"]).list()[1]["id"].as_str().unwrap().to_owned();
    let squeezed = |text: &str| text.split_whitespace().collect::<String>();
    for columns in [60, 80, 120] {
        for (args, parts) in [
            (&["runs", "list"][..], &[run.as_str(), "agent", "workspace", TASK][..]),
            (&["runs", "show"], &["list", "allow", "ok"]),
            (&["tools"], &["write", "fs.write", "Read or search output"]),
            (&["tools", "edit"], &["replace", "required"]),
            (&["inbox", "list"], &["waiting", TASK]),
        ] {
            let seen = seen(&world, columns, args);
            // A command that can be copied stays in one piece.
            for line in seen.lines().filter(|line| !line.starts_with("Example: ")) {
                assert!(line.width() <= usize::from(columns), "{columns}: {line}");
            }
            for part in parts {
                // A text that is wrapped has its words in order, with the table's own spaces between.
                assert!(
                    squeezed(&seen).contains(&squeezed(part)),
                    "{args:?} at {columns}: {part} is missing in\n{seen}"
                );
            }
        }
    }
}

#[test]
fn a_program_gets_one_line_a_row_without_colour() {
    let world = world_with_runs();
    for (args, rows) in [(&["runs", "list"][..], 3), (&["inbox", "list"], 2)] {
        let output = world.command(PROGRAM).args(args).stdout(Stdio::piped()).output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        assert_eq!(out.lines().count(), rows, "{out}");
        assert!(!out.contains('\u{1b}') && out.contains(TASK), "{out}");
    }
}

#[test]
fn manual_pages_are_listed_printed_and_installed() {
    let world = World::new();
    assert!(world.run(&["--help"]).out.contains("\n  man "), "it is listed");
    let page = world.run(&["man"]).out;
    assert!(page.contains(".TH toolgate 1") && page.contains("toolgate\\-runs"), "{page}");
    let page = world.run(&["man", "policy", "explain"]).out;
    assert!(page.contains("explain"), "{page}");
    let said = world.run(&["man", "policy", "exlpain"]);
    assert!(said.code == 2 && said.err.contains("`exlpain`"), "{said:?}");
    assert_eq!(world.run(&["man", "--install"]).code, 0);
    let installed = world.home().join(".local/share/man/man1");
    for page in ["toolgate.1", "toolgate-run.1", "toolgate-policy-explain.1"] {
        assert!(installed.join(page).is_file(), "{page}");
    }
}
