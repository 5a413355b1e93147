//! The tests: a few seeds in each setting, and one that runs for as long as `cargo xtask chaos` says.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use toolgate_testkit::skip;

use crate::driver::{Driver, Tally};
use crate::operation::{Operation, parse, print};
use crate::setting::Setting;
use crate::shrink::shrink;
use crate::side_by_side::{self, Summary};
use crate::violation::{Invariant, Violation};
use crate::vocabulary::{Choice, sequence, switched_off};
use crate::world::{ProgramCopy, obstacle};

/// Operations of one sequence.
const LENGTH: u32 = 40;
/// Sequences of each setting among the other tests.
const SEEDS: u64 = 2;
/// How long a sequence is made shorter.
const SHRINKING: Duration = Duration::from_secs(120);

/// Carries out operations in a new world.
fn try_out(setting: Setting, operations: &[Operation]) -> (Result<(), Violation>, Tally) {
    carry_out(Driver::new(setting), operations, Keep::Nothing)
}

/// Which workspaces stay, if that is asked for.
#[derive(PartialEq)]
enum Keep {
    Nothing,
    Violation,
    Everything,
}

fn carry_out(mut driver: Driver, operations: &[Operation], keep: Keep) -> (Result<(), Violation>, Tally) {
    let result = catch_unwind(AssertUnwindSafe(|| driver.run(operations)));
    let result = result.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        let words = words.or_else(|| panic.downcast_ref::<&str>().map(|words| (*words).to_owned()));
        Err(Violation::new(Invariant::ProgramAnswers, words.unwrap_or_default()))
    });
    let result = match crate::watchdog::has_ended_a_step() {
        true => Err(Violation::new(Invariant::ProgramAnswers, "A step hangs")),
        false => result,
    };
    let is_kept = keep == Keep::Everything || keep == Keep::Violation && result.is_err();
    if is_kept && std::env::var_os("TOOLGATE_CHAOS_KEEP").is_some() {
        driver.keep();
    }
    let tally = driver.tally.clone();
    // What a violation left in the way must not hide it.
    let _ = catch_unwind(AssertUnwindSafe(move || drop(driver)));
    (result, tally)
}

/// The shortest sequence with a violation of the same class, and what it violates.
fn shortest(
    setting: Setting,
    operations: &[Operation],
    violation: &Violation,
    longest: Duration,
) -> (Vec<Operation>, Violation) {
    // What came after it isn't needed.
    let last = violation.operation.and_then(|id| operations.iter().position(|one| one.id == id));
    let operations = &operations[..last.map_or(operations.len(), |last| last + 1)];
    let mut last = violation.clone();
    let mut fails = |fewer: &[Operation]| match try_out(setting, fewer).0 {
        Err(found) if found.class() == violation.class() => {
            last = found;
            true
        }
        _ => false,
    };
    let short = shrink(operations, longest, &mut fails);
    (short, last)
}

/// A violation with everything that is needed to see it again.
fn report(setting: Setting, seed: Option<u64>, operations: &[Operation], violation: &Violation) -> String {
    let from = seed.map(|seed| format!(" (seed {seed})")).unwrap_or_default();
    format!(
        "{violation}\nin the setting {}{from}, by:\n{}Repeat it with the lines above in a file: cargo xtask chaos \
         --setting {} --replay FILE\n",
        setting.name(),
        print(operations),
        setting.name()
    )
}

/// A few seeds of one setting.
fn try_setting(name: &str) {
    let setting = Setting::named(name).unwrap();
    if let Some((key, reason)) = obstacle(setting) {
        return skip(key, reason);
    }
    for seed in 0..SEEDS {
        let operations = sequence(seed, LENGTH, &Choice { is_in_place: !setting.has_overlay, ..Choice::default() });
        let (result, tally) = try_out(setting, &operations);
        if let Err(violation) = result {
            let (short, violation) = shortest(setting, &operations, &violation, SHRINKING);
            panic!("{}", report(setting, Some(seed), &short, &violation));
        }
        println!("seed {seed}: {tally:?}");
    }
}

macro_rules! settings {
    ($($name:ident: $setting:literal),+ $(,)?) => {
        $(#[test] fn $name() { try_setting($setting) })+

        #[test]
        fn every_setting_is_tried() {
            let tried = [$($setting),+];
            assert!(Setting::all().all(|setting| tried.contains(&setting.name().as_str())));
        }
    };
}

settings! {
    root_disk_usual_overlay: "root-disk-usual-overlay",
    root_disk_usual_in_place: "root-disk-usual-in_place",
    root_disk_small_overlay: "root-disk-small-overlay",
    root_disk_small_in_place: "root-disk-small-in_place",
    root_tmpfs_usual_overlay: "root-tmpfs-usual-overlay",
    root_tmpfs_usual_in_place: "root-tmpfs-usual-in_place",
    root_tmpfs_small_overlay: "root-tmpfs-small-overlay",
    root_tmpfs_small_in_place: "root-tmpfs-small-in_place",
    user_disk_usual_overlay: "user-disk-usual-overlay",
    user_disk_usual_in_place: "user-disk-usual-in_place",
    user_disk_small_overlay: "user-disk-small-overlay",
    user_disk_small_in_place: "user-disk-small-in_place",
    user_tmpfs_usual_overlay: "user-tmpfs-usual-overlay",
    user_tmpfs_usual_in_place: "user-tmpfs-usual-in_place",
    user_tmpfs_small_overlay: "user-tmpfs-small-overlay",
    user_tmpfs_small_in_place: "user-tmpfs-small-in_place",
}

/// What `cargo xtask chaos` asks for.
struct LongRun {
    settings: Vec<Setting>,
    time: Duration,
    first_seed: u64,
    length: u32,
    shrinking: Duration,
    choice: Choice,
}

impl LongRun {
    fn asked_for() -> Self {
        let variable = |name: &str| std::env::var(format!("TOOLGATE_CHAOS_{name}")).ok();
        let number = |name: &str, otherwise: u64| variable(name).map_or(otherwise, |text| text.parse().unwrap());
        let settings: Vec<Setting> = match variable("SETTING") {
            Some(name) => vec![Setting::named(&name).unwrap_or_else(|| panic!("there is no setting `{name}`"))],
            None => Setting::all().filter(|setting| obstacle(*setting).is_none()).collect(),
        };
        Self {
            settings,
            time: Duration::from_secs(60 * number("MINUTES", 5)),
            first_seed: number("SEED", 1000),
            length: u32::try_from(number("LENGTH", 60)).unwrap(),
            shrinking: Duration::from_secs(number("SHRINK", SHRINKING.as_secs())),
            choice: Choice {
                is_in_place: false,
                has_all: variable("ALL").is_some(),
                without: variable("WITHOUT")
                    .into_iter()
                    .flat_map(|names| names.split(',').map(str::to_owned).collect::<Vec<_>>())
                    .collect(),
            },
        }
    }

    fn run(&self) {
        // The program stays the same, also if somebody builds it anew meanwhile.
        let _program = ProgramCopy::shared();
        let (start, mut found) = (Instant::now(), BTreeMap::<String, usize>::new());
        let (mut operations_done, mut seeds, mut totals) = (0usize, 0u64, Tally::default());
        for (seed, setting) in (self.first_seed..).zip(self.settings.iter().cycle()) {
            if seeds > 0 && start.elapsed() > self.time {
                break;
            }
            let choice = Choice { is_in_place: !setting.has_overlay, ..self.choice.clone() };
            let operations = sequence(seed, self.length, &choice);
            let (result, tally) = carry_out(Driver::new(*setting), &operations, Keep::Violation);
            seeds += 1;
            totals.add(&tally);
            let reached = result.as_ref().err().and_then(|violation| violation.operation);
            operations_done += reached.map_or(operations.len(), |id| id as usize + 1);
            // Whoever stops a long run knows how far it came.
            println!("seed {seed} in {}, {} s: {}", setting.name(), start.elapsed().as_secs(), outcome(&result));
            let Err(violation) = result else { continue };
            let count = found.entry(violation.class()).or_default();
            *count += 1;
            if *count == 1 {
                let (short, violation) = shortest(*setting, &operations, &violation, self.shrinking);
                println!("== {}\n{}", violation.class(), report(*setting, Some(seed), &short, &violation));
            }
        }
        println!("{seeds} sequences, {operations_done} operations in {:?}; {totals:?}", start.elapsed());
        println!("switched off: {:?}", switched_off());
        found.iter().for_each(|(class, count)| println!("{count} x {class}"));
        let classes = found.len();
        let seconds = start.elapsed().as_secs();
        Summary {
            seconds,
            operations: operations_done,
            first_seed: self.first_seed,
            sequences: seeds,
            violations: found.into_iter().collect(),
        }
        .print();
        assert_eq!(classes, 0, "classes of violations");
    }
}

fn outcome(result: &Result<(), Violation>) -> String {
    result.as_ref().map_or_else(Violation::class, |()| "clean".to_owned())
}

/// Hours of it, or one sequence again: started by `cargo xtask chaos`.
#[test]
#[ignore = "runs as long as `cargo xtask chaos` says"]
fn long() {
    if let Ok(file) = std::env::var("TOOLGATE_CHAOS_REPLAY") {
        let operations = parse(&std::fs::read_to_string(&file).unwrap()).unwrap();
        for setting in LongRun::asked_for().settings {
            let mut driver = Driver::new(setting);
            driver.is_traced = true;
            let (result, tally) = carry_out(driver, &operations, Keep::Everything);
            println!("{}: {tally:?}", setting.name());
            if let Err(violation) = result {
                panic!("{}", report(setting, None, &operations, &violation));
            }
        }
        return;
    }
    let asked_for = LongRun::asked_for();
    match std::env::var("TOOLGATE_CHAOS_JOBS") {
        Ok(jobs) => side_by_side::run(&asked_for.settings, jobs.parse().unwrap(), asked_for.first_seed),
        Err(_) => asked_for.run(),
    }
}
