//! Programs such as `npx` that fetch a package and run it: which one, whether its version is exact, and where it is fetched from.

use std::path::Path;

const NPM: &[&str] = &["registry.npmjs.org"];
const PYPI: &[&str] = &["pypi.org", "files.pythonhosted.org"];

/// A program that fetches packages: its name, the words before the package, and the hosts that have it.
type PackageRunner = (&'static str, &'static [&'static [&'static str]], &'static [&'static str]);

const RUNNERS: [PackageRunner; 10] = [
    ("npx", &[&[]], NPM),
    ("bunx", &[&[]], NPM),
    ("pnpx", &[&[]], NPM),
    ("npm", &[&["exec"], &["x"]], NPM),
    ("pnpm", &[&["dlx"]], NPM),
    ("yarn", &[&["dlx"]], NPM),
    ("bun", &[&["x"]], NPM),
    ("uvx", &[&[]], PYPI),
    ("uv", &[&["tool", "run"]], PYPI),
    ("pipx", &[&["run"]], PYPI),
];

/// A package that a command fetches when it starts.
pub(super) struct FetchedPackage<'a> {
    pub(super) name: &'a str,
    /// The program that fetches it.
    pub(super) runner: &'static str,
    /// The hosts that it is fetched from, unless the program is configured to use others.
    pub(super) hosts: &'static [&'static str],
}

impl<'a> FetchedPackage<'a> {
    /// The package of a command; none if it runs what is installed.
    pub(super) fn of(command: &'a [String]) -> Option<Self> {
        let (program, arguments) = command.split_first()?;
        let program = Path::new(program).file_name()?.to_str()?;
        let (runner, verbs, hosts) = RUNNERS.into_iter().find(|(runner, ..)| *runner == program)?;
        let words: Vec<&str> = arguments.iter().map(String::as_str).filter(|word| !word.starts_with('-')).collect();
        let name = verbs.iter().find_map(|verb| words.strip_prefix(*verb)?.first().copied())?;
        Some(Self { name, runner, hosts })
    }

    /// Whether the same version runs every time.
    pub(super) fn has_exact_version(&self) -> bool {
        let version = self.name.trim_start_matches('@').split_once(['@', '=']).map(|(_, version)| version);
        version
            .is_some_and(|version| version.trim_start_matches('=').starts_with(|letter: char| letter.is_ascii_digit()))
    }

    /// The hosts that it is fetched from, without those that the server may reach anyway.
    pub(super) fn unlisted_hosts(&self, listed: &[String]) -> Vec<String> {
        let is_unlisted = |host: &&&str| !listed.iter().any(|known| known == **host);
        self.hosts.iter().filter(is_unlisted).map(|host| (*host).to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        line.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_package_without_an_exact_version_is_named() {
        for (line, expected) in [
            ("npx -y @modelcontextprotocol/server-github", Some("@modelcontextprotocol/server-github")),
            ("npx -y @modelcontextprotocol/server-github@2025.4.8", None),
            ("npx -y server-github@latest", Some("server-github@latest")),
            ("/usr/bin/npx some-server@^1", Some("some-server@^1")),
            ("uvx mcp-server-time==2026.10.19", None),
            ("uvx mcp-server-time", Some("mcp-server-time")),
            ("pipx run mcp-server-time", Some("mcp-server-time")),
            ("npm exec some-server", Some("some-server")),
            ("node server.js", None),
            ("npm start", None),
            ("npm run server", None),
            ("uv run server.py", None),
            ("uv --directory /opt/x run server.py", None),
            ("npx", None),
        ] {
            let words = words(line);
            let package = FetchedPackage::of(&words).filter(|package| !package.has_exact_version());
            assert_eq!(package.map(|package| package.name), expected, "{line}");
        }
    }

    #[test]
    fn a_fetched_package_says_where_it_is_fetched_from() {
        let hosts = |line: &str, listed: &[&str]| {
            let (words, listed) = (words(line), listed.iter().map(|host| (*host).to_owned()).collect::<Vec<_>>());
            FetchedPackage::of(&words).map(|package| package.unlisted_hosts(&listed))
        };
        assert_eq!(hosts("npx -y server@1", &[]), Some(vec!["registry.npmjs.org".to_owned()]));
        assert_eq!(hosts("npx -y server@1", &["registry.npmjs.org"]), Some(Vec::new()));
        assert_eq!(hosts("uv tool run server", &["pypi.org"]), Some(vec!["files.pythonhosted.org".to_owned()]));
        assert_eq!(hosts("node server.js", &[]), None);
    }

    #[test]
    fn each_host_is_one_of_the_registries() {
        let hosts = RUNNERS.iter().flat_map(|(_, _, hosts)| *hosts);
        assert_eq!(hosts.filter(|host| !toolgate_policy::is_registry(host)).count(), 0);
    }
}
