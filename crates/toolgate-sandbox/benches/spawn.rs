//! What confinement costs: a confined `/bin/true` beside a plain one and beside `bwrap`, and opening files inside beside
//! outside. All in one run; only the ratios mean something.
#![allow(clippy::disallowed_methods, reason = "measures the plain thing too")]

use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use toolgate_contract::{
    ApplyMode, ChildProcess, Denial, EgressPolicy, LaunchSpec, NetworkAccess, Output, StagedChanges,
};
use toolgate_sandbox::Roots;
use toolgate_sandbox::process::{Child, Profile, Sandbox, SandboxOptions, Tier, zygote_main_if_asked};

/// Runs of each kind. They take turns, so that a slow moment of the machine hits all alike.
const ROUNDS: usize = 100;

fn main() {
    zygote_main_if_asked();
    if std::env::args().nth(1).as_deref() == Some("open-and-close") {
        return open_and_close();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure());
}

async fn measure() {
    let workspace = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    let profile = Profile::for_workspace(workspace.path(), std::env::home_dir().as_deref());
    let warm =
        Sandbox::new(SandboxOptions { tier: Some(Tier::Namespaces), ..SandboxOptions::default() }).await.unwrap();
    let cold = Sandbox::new(SandboxOptions { tier: Some(Tier::Namespaces), warm: 0, ..SandboxOptions::default() })
        .await
        .unwrap();
    let without_spare = SandboxOptions { spare_after: usize::MAX, ..SandboxOptions::default() };
    let bare = Sandbox::new(SandboxOptions { tier: Some(Tier::Namespaces), warm: 0, ..without_spare }).await.unwrap();
    let with_bwrap = Path::new("/usr/bin/bwrap").exists();
    let plain_command = LaunchSpec::program("/bin/true");
    let listeners = plain_command.clone().network(NetworkAccess::Listed(Arc::new(Closed)));
    let reading = listeners.clone().apply_mode(ApplyMode::None);
    let mut samples: [Vec<Duration>; 10] = Default::default();
    for _ in 0..ROUNDS {
        warm.prepare(&profile, &reading).await.unwrap();
        calm().await;
        samples[7].push(confined(&warm, &profile, &reading).await);
        calm().await;
        samples[8].push(confined(&cold, &profile, &reading).await);
        calm().await;
        warm.prepare(&profile, &listeners).await.unwrap();
        calm().await;
        samples[5].push(confined(&warm, &profile, &listeners).await);
        calm().await;
        samples[6].push(confined(&cold, &profile, &listeners).await);
        calm().await;
        warm.prepare(&profile, &plain_command).await.unwrap();
        calm().await;
        samples[0].push(plain("/bin/true", &[]));
        samples[1].push(confined(&warm, &profile, &plain_command).await);
        calm().await;
        samples[2].push(confined(&cold, &profile, &plain_command).await);
        calm().await;
        samples[9].push(confined(&bare, &profile, &plain_command).await);
        calm().await;
        if with_bwrap {
            samples[3].push(plain("/usr/bin/bwrap", &bwrap_arguments(workspace.path())));
            calm().await;
        }
        samples[4].push(killed(&cold, &profile).await);
    }
    let [
        plain,
        warm_time,
        cold_time,
        bwrap,
        kill,
        warm_listeners,
        cold_listeners,
        warm_reading,
        cold_reading,
        bare_time,
    ] = samples.map(median);
    println!(
        "user {}, {ROUNDS} rounds, medians; plain spawn of /bin/true: {plain:?}",
        rustix::process::getuid().as_raw()
    );
    report("confined /bin/true, prepared ÷ plain", warm_time, plain, "at most 1.3");
    report("confined /bin/true, from nothing ÷ plain", cold_time, plain, "at most 2.9");
    report("the same without a spare sandbox", bare_time, plain, "known");
    report("confined with listeners, prepared ÷ plain", warm_listeners, plain, "at most 1.6");
    report("confined with listeners, from nothing ÷ plain", cold_listeners, plain, "at most 3.5");
    report("confined, only reading, prepared ÷ plain", warm_reading, plain, "at most 1.6");
    report("confined, only reading, from nothing ÷ plain", cold_reading, plain, "at most 3.5");
    if with_bwrap {
        report("bwrap with the same mounts and namespaces ÷ plain", bwrap, plain, "a peer");
    }
    report("from kill to the end of output ÷ plain", kill, plain, "known");
    let (outside, inside) = opens(&warm, &profile).await;
    report("open and close inside ÷ outside", inside, outside, "at most 1.2");
    in_a_large_tree().await;
}

/// On a tree of 50,000 files: a command on a layer of its own, with what differs looked up, beside a plain confined one.
async fn in_a_large_tree() {
    let workspace = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    let (layers, root) =
        (tempfile::Builder::new().tempdir_in("/var/tmp").unwrap(), workspace.path().canonicalize().unwrap());
    for number in 0..50_000 {
        let directory = root.join(format!("{}/{}", number / 2_500, number / 50 % 50));
        if number % 50 == 0 {
            std::fs::create_dir_all(&directory).unwrap();
        }
        std::fs::write(directory.join(format!("{number}.txt")), number.to_string()).unwrap();
    }
    let profile = Profile {
        staging: Some(layers.path().to_owned()),
        ..Profile::for_workspace(&root, std::env::home_dir().as_deref())
    };
    let sandbox = Sandbox::new(SandboxOptions { tier: Some(Tier::Namespaces), warm: 0, ..SandboxOptions::default() })
        .await
        .unwrap();
    let files = Roots::open(&root).unwrap();
    let (mut in_place, mut staged) = (Vec::new(), Vec::new());
    for _ in 0..50 {
        let start = Instant::now();
        confined_line(&sandbox, &profile).await;
        in_place.push(start.elapsed());
        let start = Instant::now();
        let child = sandbox.launch(&profile, &sh(LINE).apply_mode(ApplyMode::AtEnd)).await.unwrap();
        read(&child).await;
        child.wait().await.unwrap();
        let kept = child.take_staged().unwrap();
        assert_eq!(kept.differences(&files).unwrap().all.len(), 1);
        drop(kept);
        staged.push(start.elapsed());
    }
    let [in_place, staged] = [in_place, staged].map(median);
    println!("50,000 files, 50 rounds, medians; a confined command that changes one of them: {in_place:?}");
    report("a command that changes one of 50,000 files, on a layer ÷ in place", staged, in_place, "at most 1.4");
}

/// Something else every time, lest it change nothing.
const LINE: &str = "date +%N > 7/7/17869.txt";

async fn confined_line(sandbox: &Sandbox, profile: &Profile) {
    let child = sandbox.launch(profile, &sh(LINE)).await.unwrap();
    read(&child).await;
    child.wait().await.unwrap();
}

fn sh(line: &str) -> LaunchSpec {
    LaunchSpec::program("/bin/sh").argument("-c").argument(line)
}

/// A border that nobody passes, as most commands have it.
#[derive(Debug)]
struct Closed;

impl EgressPolicy for Closed {
    fn pass(&self, host: &str, port: u16) -> Result<(), Denial> {
        Err(Denial::of_host(host, port, "closed", None))
    }

    fn arrive(&self, host: &str, port: u16, _: std::net::IpAddr) -> Result<(), Denial> {
        self.pass(host, port)
    }

    fn cleared(&self) -> Vec<(String, u16)> {
        Vec::new()
    }
}

/// Lets the kernel take the last sandbox apart, and ours build the next one, so that nobody pays for somebody else.
async fn calm() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}

fn report(what: &str, time: Duration, peer: Duration, goal: &str) {
    println!("{what}: {:.2} x   (wanted: {goal})", time.as_secs_f64() / peer.as_secs_f64());
}

fn median(mut samples: Vec<Duration>) -> Duration {
    samples.sort();
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

/// As the standard library starts a process, with its output read to the end, as a tool does.
fn plain(program: &str, arguments: &[String]) -> Duration {
    let start = Instant::now();
    let mut command = std::process::Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    start.elapsed()
}

async fn confined(sandbox: &Sandbox, profile: &Profile, spec: &LaunchSpec) -> Duration {
    let start = Instant::now();
    let child = sandbox.launch(profile, spec).await.unwrap();
    let output = read(&child).await;
    assert_eq!((child.wait().await.unwrap().shell_code(), output.as_str()), (0, ""));
    start.elapsed()
}

/// How long the output goes on after a kill, with a child that ignores every polite request and holds the output.
async fn killed(sandbox: &Sandbox, profile: &Profile) -> Duration {
    let line = "setsid sh -c 'trap \"\" TERM HUP INT; sleep 1000' & echo started; sleep 1000";
    let child = sandbox.launch(profile, &sh(line)).await.unwrap();
    assert_eq!(child.output().await, Some(Output::Out(b"started\n".to_vec())));
    let start = Instant::now();
    child.kill();
    read(&child).await;
    let elapsed = start.elapsed();
    child.wait().await.unwrap();
    elapsed
}

async fn read(child: &Child) -> String {
    let (output, errors) = child.read_to_end().await;
    assert_eq!(errors, b"");
    String::from_utf8(output).unwrap()
}

/// The same namespaces and about the same mounts; it has no Landlock, no filter and no limits.
fn bwrap_arguments(workspace: &Path) -> Vec<String> {
    let workspace = workspace.to_str().unwrap();
    let line = format!(
        "--unshare-all --die-with-parent --new-session --cap-drop ALL --ro-bind / / --proc /proc --dev /dev --tmpfs /run \
         --tmpfs /tmp --tmpfs /root --bind {workspace} {workspace} /bin/true"
    );
    line.split_whitespace().map(str::to_owned).collect()
}

/// Opens and closes a file many times, outside and inside.
async fn opens(sandbox: &Sandbox, profile: &Profile) -> (Duration, Duration) {
    let program = profile.working_directory.join("opens");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let (mut outside, mut inside) = (Vec::new(), Vec::new());
    for _ in 0..7 {
        let output = std::process::Command::new(&program).arg("open-and-close").output().unwrap();
        outside.push(nanoseconds(&String::from_utf8(output.stdout).unwrap()));
        let spec = LaunchSpec::program(&program).argument("open-and-close");
        let child = sandbox.launch(profile, &spec).await.unwrap();
        inside.push(nanoseconds(&read(&child).await));
        child.wait().await.unwrap();
    }
    (median(outside), median(inside))
}

fn nanoseconds(text: &str) -> Duration {
    Duration::from_nanos(text.trim().parse().unwrap())
}

/// The best of many batches: what others do on the machine only ever adds.
fn open_and_close() {
    const TIMES: u32 = 500;
    let batch = || {
        let start = Instant::now();
        (0..TIMES).for_each(|_| drop(std::fs::File::open("/etc/passwd").unwrap()));
        start.elapsed() / TIMES
    };
    println!("{}", (0..100).map(|_| batch()).min().unwrap_or_default().as_nanos());
}
