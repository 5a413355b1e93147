//! The stage for attacks by processes: a workspace, a home with secrets, a place outside, and a sandbox for the first of
//! them. Every attack is made with each means of confinement, as whoever runs the tests and, if that is root, as an
//! ordinary user as well.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio::runtime::Runtime;
use toolgate_contract::LaunchSpec;
use toolgate_sandbox::process::{
    Child, ChildExit, HomeDirectory, Profile, Readable, ResourceLimits, Sandbox, SandboxError, SandboxOptions, Tier,
};

use crate::testkit::{SKIPS_FILE, skip, wait_until};

/// Somebody without any rights and without an entry in the list of users. Each test has its own, as the kernel counts some
/// things by user.
fn ordinary_user() -> u32 {
    50_000 + std::process::id() % 10_000
}

/// Tells the test that it is the second run, as an ordinary user.
const SECOND_RUN: &str = "TOOLGATE_TEST_AS_ORDINARY_USER";

/// Where a stage is built, if not in the usual place.
pub(crate) const DIRECTORY: &str = "TOOLGATE_TEST_DIRECTORY";

pub(crate) const SECRET: &str = "the-secret-that-must-not-leak";

/// Declares a test that makes an attack on each stage.
macro_rules! attack {
    ($(#[$meta:meta])* fn $name:ident($scene:ident) $body:block) => {
        $(#[$meta])*
        #[test]
        fn $name() {
            fn on_stage($scene: &$crate::processes::scene::Scene) $body
            $crate::processes::scene::as_each_user(module_path!(), stringify!($name), on_stage);
        }
    };
}
pub(crate) use attack;

/// Runs the attack with each means, with namespaces in a new sandbox and in a spare one, and again as an ordinary user if this is
/// root.
pub(crate) fn as_each_user(module: &str, name: &str, attempt: fn(&Scene)) {
    for tier in [Tier::Namespaces, Tier::Bubblewrap, Tier::Landlock] {
        if tier == Tier::Bubblewrap && !Path::new("/usr/bin/bwrap").exists() {
            skip("no-bubblewrap", "bwrap isn't installed, so the attack isn't made against it");
            continue;
        }
        eprintln!("{name} against {} as user {}", tier.name(), user());
        attempt(&Scene::new(tier));
        if tier == Tier::Namespaces {
            eprintln!("{name} against a spare sandbox as user {}", user());
            attempt(&Scene::with_spares());
        }
    }
    if user() == 0 {
        run_again_as_ordinary_user(module, name);
    } else if std::env::var_os(SECOND_RUN).is_none() {
        skip("not-root", "only root can make the attack as root and as an ordinary user");
    }
}

fn run_again_as_ordinary_user(module: &str, name: &str) {
    let (_, module) = module.split_once("::").unwrap();
    // By its own link in /proc, as the way there may be barred for others.
    let mut again = std::process::Command::new("/proc/self/exe");
    again.args(["--exact", &format!("{module}::{name}"), "--nocapture", "--include-ignored"]).env(SECOND_RUN, "1");
    // The first run has recorded the same skips, and an ordinary user may not write there.
    again.env_remove(SKIPS_FILE);
    let output = again.uid(ordinary_user()).gid(ordinary_user()).current_dir("/").output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"), "as an ordinary user:\n{text}");
}

/// Whether no other test runs in this process.
pub(crate) fn is_alone() -> bool {
    std::env::var_os("NEXTEST").is_some() || std::env::var_os(SECOND_RUN).is_some()
}

pub(crate) fn user() -> u32 {
    rustix::process::getuid().as_raw()
}

/// What a command left behind.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) output: String,
    pub(crate) errors: String,
    pub(crate) ended: ChildExit,
}

impl Outcome {
    pub(crate) fn worked(&self) -> bool {
        self.ended == ChildExit::Code(0)
    }
}

pub(crate) struct Scene {
    pub(crate) tier: Tier,
    pub(crate) runtime: Runtime,
    pub(crate) sandbox: Sandbox,
    /// How its sandbox was made.
    pub(crate) options: SandboxOptions,
    /// Whether every command gets the zygote's spare sandbox.
    has_spares: bool,
    directory: TempDir,
}

impl Scene {
    pub(crate) fn new(tier: Tier) -> Self {
        Self::with_options(SandboxOptions { tier: Some(tier), ..SandboxOptions::default() }, false)
    }

    /// A stage on which every command gets a spare sandbox.
    pub(crate) fn with_spares() -> Self {
        let tier = Some(Tier::Namespaces);
        Self::with_options(SandboxOptions { tier, warm: 0, spare_after: 0, ..SandboxOptions::default() }, true)
    }

    fn with_options(options: SandboxOptions, has_spares: bool) -> Self {
        let place = std::env::var_os(DIRECTORY).unwrap_or_else(|| "/var/tmp".into());
        // Not in /tmp, which is private inside anyway: what is outside has to be hidden or kept by the profile.
        let directory = tempfile::Builder::new().prefix("escape-").tempdir_in(place).unwrap();
        let directory_path = directory.path().to_owned();
        fs::set_permissions(&directory_path, fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["workspace", "home/.ssh", "outside"] {
            fs::create_dir_all(directory_path.join(name)).unwrap();
        }
        for name in ["home/.ssh/id", "outside/secret", "workspace/.env"] {
            fs::write(directory_path.join(name), SECRET).unwrap();
        }
        fs::write(directory_path.join("home/.gitconfig"), "[user]\n\tname = A\n\temail = a@example.com\n").unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let options = SandboxOptions { program: Some(zygote(&directory_path)), ..options };
        let sandbox = runtime.block_on(Sandbox::new(options.clone())).unwrap();
        Self { tier: sandbox.tier(), runtime, sandbox, options, has_spares, directory }
    }

    /// Runs a command, so that the spare sandbox after it has the root of this profile, and waits until there is one.
    pub(crate) fn wait_for_spare(&self, profile: &Profile) {
        // Where everything can be read, there is no root that could be made ahead.
        if !self.has_spares || profile.readable == Readable::Everything {
            return;
        }
        self.runtime.block_on(async {
            // A profile that can't be enforced is the attack's own matter.
            let Ok(child) = self.sandbox.launch(profile, &LaunchSpec::program("/bin/true")).await else { return };
            child.wait().await.unwrap();
            drop(child);
            wait_until("a spare sandbox", || !spare_sandboxes(&self.path("zygote")).is_empty());
        });
    }

    /// Whether it has a mount namespace and a PID namespace.
    pub(crate) fn has_namespaces(&self) -> bool {
        self.tier != Tier::Landlock
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.path("workspace")
    }

    /// The usual profile, with the stage's own home and with its outside hidden by the confinement alone.
    pub(crate) fn profile(&self) -> Profile {
        let home = self.path("home");
        let mut profile = Profile::for_workspace(&self.workspace(), None);
        profile.home = Some(HomeDirectory { path: home.clone(), shown: vec![".gitconfig".into()] });
        profile.secret.push(self.workspace().join(".env"));
        profile.limits = ResourceLimits { processes: Some(301), ..ResourceLimits::default() };
        profile.with_variable("HOME", home).with_variable("PATH", "/usr/local/bin:/usr/bin:/bin")
    }

    /// Runs a line in the usual profile.
    pub(crate) fn inside(&self, line: &str) -> Outcome {
        self.inside_with(&self.profile(), line)
    }

    pub(crate) fn inside_with(&self, profile: &Profile, line: &str) -> Outcome {
        self.run(profile, &sh(line)).unwrap()
    }

    pub(crate) fn run(&self, profile: &Profile, spec: &LaunchSpec) -> Result<Outcome, SandboxError> {
        self.wait_for_spare(profile);
        self.runtime.block_on(async {
            let child = self.sandbox.launch(profile, spec).await?;
            Ok(finish(&child).await)
        })
    }

    pub(crate) fn start(&self, line: &str) -> Child {
        self.wait_for_spare(&self.profile());
        self.runtime.block_on(self.sandbox.launch(&self.profile(), &sh(line))).unwrap()
    }

    /// Runs the same line without a sandbox, to show that it works where nothing stops it.
    pub(crate) fn outside(&self, line: &str) -> Outcome {
        let mut command = std::process::Command::new("/bin/sh");
        command.args(["-c", line]).current_dir(self.workspace()).env("HOME", self.path("home"));
        let output = command.output().unwrap();
        Outcome {
            output: String::from_utf8_lossy(&output.stdout).into_owned(),
            errors: String::from_utf8_lossy(&output.stderr).into_owned(),
            ended: output.status.code().map_or(ChildExit::Signal(0), ChildExit::Code),
        }
    }

    /// Puts the program that makes forbidden calls into the workspace; the text starts it.
    pub(crate) fn attacker(&self) -> String {
        let path = self.workspace().join("attacker");
        if !path.exists() {
            fs::copy(env!("CARGO_BIN_EXE_toolgate-attacker"), &path).unwrap();
        }
        path.to_str().unwrap().to_owned()
    }
}

/// A copy that every user can reach.
fn zygote(directory: &Path) -> PathBuf {
    let path = directory.join("zygote");
    fs::copy(env!("CARGO_BIN_EXE_toolgate-zygote"), &path).unwrap();
    path
}

/// The sandboxes that wait for a plan: processes in which a zygote of this program still executes itself, and that have a
/// companion, but no command.
pub(crate) fn spare_sandboxes(program: &Path) -> Vec<i32> {
    let executes_it = |pid: &i32| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| path == program);
    let zygotes = children_of(std::process::id() as i32).into_iter().filter(executes_it);
    let first_processes = zygotes.flat_map(children_of).filter(executes_it);
    first_processes.filter(|pid| children_of(*pid).iter().any(executes_it)).collect()
}

fn children_of(pid: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<_>>()).collect()
}

/// A line for the plainest shell, which most machines have.
pub(crate) fn sh(line: impl Into<OsString>) -> LaunchSpec {
    LaunchSpec::program("/bin/sh").argument("-c").argument(line)
}

/// Reads everything that a command writes, and waits for its end.
pub(crate) async fn finish(child: &Child) -> Outcome {
    let (output, errors) = child.read_to_end().await;
    let ended = child.wait().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Outcome { output: text(output), errors: text(errors), ended }
}
