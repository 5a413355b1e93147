//! Rules about files, hosts and permissions apply to commands too.

use toolgate_contract::Decision::{Allow, Ask, Deny};

use crate::world::{judge, policy};

#[test]
fn rules_of_every_kind_bind_commands() {
    for (rule, command, expected) in [
        ("decision = 'deny'\npath = 'secret/**'", "cat secret/a", Deny),
        ("decision = 'deny'\npath = 'secret/**'", "cd secret && cat a", Deny),
        ("decision = 'deny'\npath = 'secret/**'", "sh -c 'cd secret; tac < a'", Deny),
        ("decision = 'deny'\npath = 'secret/**'", "cat public/a", Allow),
        ("decision = 'deny'\npath = '*.lock'\naccess = ['write']", "echo x > Cargo.lock", Deny),
        ("decision = 'deny'\npath = '*.lock'\naccess = ['write']", "cat Cargo.lock", Allow),
        ("decision = 'ask'\npath = 'docs/**'", "sed -i s/a/b/ docs/a.md", Ask),
        ("decision = 'allow'\npath = 'build/**'\naccess = ['delete']", "rm -rf build/x", Allow),
        ("decision = 'allow'\npath = 'build/**'\naccess = ['delete']", "rm -rf build/x src/x", Ask),
        ("decision = 'allow'\nhost = 'example.com'", "curl https://example.com/a", Allow),
        ("decision = 'allow'\nhost = 'example.com'", "curl https://example.com/a https://example.org", Ask),
        ("decision = 'allow'\nhost = '@registries'", "pip install requests", Allow),
        ("decision = 'allow'\nhost = '@registries'", "npm install && cargo add serde", Allow),
        ("decision = 'allow'\nhost = '@registries'", "curl https://example.com/a", Ask),
        ("decision = 'allow'\nhost = '@registries'", "git clone https://github.com/a/b.git", Ask),
        ("decision = 'deny'\nhost = '*.example.com'", "git clone https://git.example.com/a.git", Deny),
        ("decision = 'deny'\npermission = 'proc.exec'", "ls", Deny),
        ("decision = 'ask'\npermission = 'proc.exec'", "ls | head", Ask),
        ("decision = 'allow'\npermission = 'git.write'", "git commit -m x", Allow),
        ("decision = 'allow'\ncommand = ['git', 'commit']", "git commit -m x && git tag y", Ask),
        ("decision = 'allow'\ncommand = ['rm']", "rm a", Allow),
        ("decision = 'allow'\ncommand = ['rm']", "rm -rf /", Deny),
        ("decision = 'allow'\ncommand = ['rm']", "rm .env", Deny),
        ("decision = 'allow'\ncommand = ['sudo', 'ls']", "sudo ls -l", Allow),
        ("decision = 'allow'\ncommand = ['ls']", "sudo ls -l", Ask),
    ] {
        let policy = policy(&format!("[[rules]]\n{rule}\n"));
        assert_eq!(judge(&policy, command).decision, expected, "{rule}: {command}");
    }
}

#[test]
fn the_registries_are_offered_where_one_of_them_is_asked_about() {
    for (command, expected) in [("pip install requests", true), ("npm ci", true), ("curl https://example.com/a", false)]
    {
        let verdict = judge(&policy(""), command);
        assert_eq!(verdict.decision, Ask, "{command}");
        let offers = |reason: &str| reason.contains("`network.allow = [\"@registries\"]`");
        assert_eq!(verdict.asks.iter().any(|ask| offers(&ask.reason)), expected, "{command}: {:?}", verdict.asks);
    }
}

#[test]
fn unknown_commands_are_decided_by_their_setting() {
    for (setting, expected) in [("confine", Allow), ("ask", Ask), ("deny", Deny)] {
        let policy =
            policy(&format!("commands.unknown = '{setting}'\n[[rules]]\ndecision = 'allow'\ncommand = ['*']\n"));
        for command in ["$x", "cat $x", "source a", "ls; eval \"$x\"", "echo 'open", "a=(1 2); ${a[$i]}", "PATH=. ls"] {
            assert_eq!(judge(&policy, command).decision, expected, "{setting}: {command}");
        }
    }
}

#[test]
fn dangers_go_away_only_where_that_was_declared_and_some_never() {
    let policy = policy("[commands]\nexcept = ['git push --force', 'rm']\nallow = ['git push']");
    assert_eq!(judge(&policy, "git push --force origin main").decision, Allow);
    assert_eq!(judge(&policy, "git push origin --delete main").decision, Deny);
    assert_eq!(judge(&policy, "rm -rf /").decision, Deny);
}
