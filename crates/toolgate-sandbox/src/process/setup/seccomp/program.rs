//! Rules into instructions. The kernel remembers which calls pass whatever their arguments are, and never runs the program
//! for those again.

use std::collections::BTreeMap;

use super::super::super::syscall::seccomp::BpfInstruction;
use super::rules::{ArgumentCheck, ArgumentTest, SyscallRule};

/// Where the kernel puts things: the number of the call, the kind of machine, the arguments (lower half first).
const CALL_AT: u32 = 0;
const MACHINE_AT: u32 = 4;
const ARGUMENTS_AT: u32 = 16;

#[cfg(target_arch = "x86_64")]
const MACHINE: u32 = 0xC000_003E;
#[cfg(target_arch = "aarch64")]
const MACHINE: u32 = 0xC000_00B7;

/// From here on numbers belong to the x32 way of calling: the same calls by other numbers, which rules wouldn't match.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const GO: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const ANSWER: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// The whole program.
pub(super) fn program(rules: &[SyscallRule]) -> Vec<BpfInstruction> {
    let mut program = vec![
        plain(LOAD, MACHINE_AT),
        // Another machine's calls (32-bit programs) have other numbers: none of them.
        jump(IF_EQUAL, MACHINE, 1, 0),
        refuse(libc::ENOSYS),
        plain(LOAD, CALL_AT),
    ];
    #[cfg(target_arch = "x86_64")]
    program.extend([jump(IF_AT_LEAST, X32, 0, 1), refuse(libc::ENOSYS)]);
    program.extend(tree(&stretches(rules)));
    program
}

/// Neighbouring calls with the same fate, and the rules that decide it.
struct SyscallRange<'a> {
    first: u32,
    last: u32,
    rules: Vec<&'a SyscallRule>,
}

/// All calls that have rules, in order. Those that are always refused with the same error and lie side by side are one.
fn stretches(rules: &[SyscallRule]) -> Vec<SyscallRange<'_>> {
    let mut by_call: BTreeMap<u32, Vec<&SyscallRule>> = BTreeMap::new();
    for rule in rules {
        by_call.entry(rule.call as u32).or_default().push(rule);
    }
    let mut stretches: Vec<SyscallRange<'_>> = Vec::new();
    for (call, rules) in by_call {
        let fate = |rules: &[&SyscallRule]| rules[0].when.is_empty().then_some(rules[0].error);
        match stretches.last_mut() {
            Some(before)
                if before.last + 1 == call && fate(&rules).is_some() && fate(&before.rules) == fate(&rules) =>
            {
                before.last = call;
            }
            _ => stretches.push(SyscallRange { first: call, last: call, rules }),
        }
    }
    stretches
}

/// Looks for the call's number by halves. When a filter is installed, the kernel tries it on every call there is, so a
/// program that is gone through from top to bottom would cost a quarter of a millisecond more.
fn tree(stretches: &[SyscallRange<'_>]) -> Vec<BpfInstruction> {
    let (lower, upper) = match stretches {
        [] => return vec![plain(ANSWER, libc::SECCOMP_RET_ALLOW)],
        [one] => return leaf(one),
        _ => stretches.split_at(stretches.len() / 2),
    };
    let below = tree(lower);
    let mut program = vec![jump(IF_AT_LEAST, upper[0].first, 0, 1), plain(GO, below.len() as u32)];
    program.extend(below);
    program.extend(tree(upper));
    program
}

/// All rules for one stretch; if none of them applies, the call is allowed.
fn leaf(SyscallRange { first, last, rules }: &SyscallRange<'_>) -> Vec<BpfInstruction> {
    let body: Vec<BpfInstruction> = rules.iter().flat_map(|rule| rule_instructions(rule)).collect();
    let past = body.len() as u8;
    let mut program = match first == last {
        true => vec![jump(IF_EQUAL, *first, 0, past)],
        false => vec![jump(IF_AT_LEAST, *first, 0, past + 1), jump(IF_AT_LEAST, last + 1, past, 0)],
    };
    program.extend(body);
    program.push(plain(ANSWER, libc::SECCOMP_RET_ALLOW));
    program
}

/// One rule: its checks, then its answer. Built from the end, so that each jump knows how far the end is.
fn rule_instructions(rule: &SyscallRule) -> Vec<BpfInstruction> {
    let mut instructions = vec![refuse(rule.error)];
    for check in rule.when.iter().rev() {
        let mut before = check_instructions(check, instructions.len() as u8);
        before.extend(instructions);
        instructions = before;
    }
    instructions
}

/// Loads the argument and goes on if the test holds; otherwise jumps over what is left of the rule.
fn check_instructions(check: &ArgumentCheck, left: u8) -> Vec<BpfInstruction> {
    let mut instructions = vec![plain(LOAD, ARGUMENTS_AT + 8 * check.argument)];
    match &check.test {
        ArgumentTest::Is(value) => instructions.push(jump(IF_EQUAL, *value, 0, left)),
        ArgumentTest::IsNot(value) => instructions.push(jump(IF_EQUAL, *value, left, 0)),
        ArgumentTest::HasAny(bits) => instructions.push(jump(IF_ANY_BIT, *bits, 0, left)),
        ArgumentTest::IsNone(values) => {
            let following = (0..values.len() as u8).rev();
            let one = |(value, following): (&u32, u8)| jump(IF_EQUAL, *value, left + following, 0);
            instructions.extend(values.iter().zip(following).map(one));
        }
    }
    instructions
}

fn refuse(error: i32) -> BpfInstruction {
    plain(ANSWER, libc::SECCOMP_RET_ERRNO | error as u32)
}

fn plain(code: u16, value: u32) -> BpfInstruction {
    BpfInstruction { code, jt: 0, jf: 0, k: value }
}

fn jump(code: u16, value: u32, if_so: u8, if_not: u8) -> BpfInstruction {
    BpfInstruction { code, jt: if_so, jf: if_not, k: value }
}

#[cfg(test)]
mod tests {
    use super::super::rules::{AllowedSockets, all};
    use super::*;

    /// What the program answers to a call, by a machine as small as its language.
    fn answer(program: &[BpfInstruction], machine: u32, call: u32, arguments: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend(call.to_le_bytes());
        data.extend(machine.to_le_bytes());
        data.extend(0u64.to_le_bytes());
        arguments.iter().for_each(|argument| data.extend(argument.to_le_bytes()));
        let (mut at, mut loaded) = (0, 0);
        loop {
            let BpfInstruction { code, jt, jf, k } = program[at];
            at += 1;
            let go = |condition: bool| usize::from(if condition { jt } else { jf });
            match code {
                LOAD => loaded = u32::from_le_bytes(data[k as usize..][..4].try_into().unwrap()),
                IF_EQUAL => at += go(loaded == k),
                IF_ANY_BIT => at += go(loaded & k != 0),
                GO => at += k as usize,
                IF_AT_LEAST => at += go(loaded >= k),
                ANSWER => return k,
                other => panic!("no such instruction: {other}"),
            }
        }
    }

    fn usual(call: libc::c_long, arguments: &[u64]) -> u32 {
        let program = program(&all(AllowedSockets { unix_sockets: true, internet_sockets: true }));
        let mut all_arguments = [0; 6];
        all_arguments[..arguments.len()].copy_from_slice(arguments);
        answer(&program, MACHINE, call as u32, all_arguments)
    }

    const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
    const REFUSED: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    const MISSING: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

    #[test]
    fn ordinary_calls_pass() {
        for call in [libc::SYS_read, libc::SYS_openat, libc::SYS_execve, libc::SYS_futex, libc::SYS_landlock_add_rule] {
            assert_eq!(usual(call, &[]), ALLOWED, "{call}");
        }
        assert_eq!(usual(libc::SYS_clone, &[libc::SIGCHLD as u64]), ALLOWED);
        assert_eq!(usual(libc::SYS_ioctl, &[0, libc::TCGETS]), ALLOWED);
        for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] {
            assert_eq!(usual(libc::SYS_socket, &[family as u64]), ALLOWED, "{family}");
        }
    }

    #[test]
    fn dangerous_calls_are_refused() {
        for call in [libc::SYS_ptrace, libc::SYS_keyctl, libc::SYS_mount, libc::SYS_unshare, libc::SYS_migrate_pages] {
            assert_eq!(usual(call, &[]), REFUSED, "{call}");
        }
        assert_eq!(usual(libc::SYS_clone3, &[]), MISSING);
        assert_eq!(usual(libc::SYS_clone, &[(libc::CLONE_NEWUSER | libc::SIGCHLD) as u64]), REFUSED);
        for family in [libc::AF_VSOCK, libc::AF_ALG, libc::AF_PACKET, 0, 99] {
            assert_eq!(usual(libc::SYS_socket, &[family as u64]), REFUSED, "{family}");
        }
        assert_ne!(usual(libc::SYS_socket, &[libc::AF_NETLINK as u64, 3, 2]), ALLOWED);
    }

    #[test]
    fn every_rule_is_found_in_the_tree() {
        let rules = all(AllowedSockets { unix_sockets: true, internet_sockets: true });
        for rule in rules.iter().filter(|rule| rule.when.is_empty()) {
            let expected = libc::SECCOMP_RET_ERRNO | rule.error as u32;
            assert_eq!(usual(rule.call, &[]), expected, "{}", rule.call);
        }
        let unconditional: Vec<_> = rules.iter().map(|rule| rule.call).collect();
        for call in (0..1000).filter(|call| !unconditional.contains(call)) {
            assert_eq!(usual(call, &[]), ALLOWED, "{call}");
        }
    }

    #[test]
    fn the_upper_half_of_an_argument_hides_nothing() {
        let above = 1 << 32;
        assert_eq!(usual(libc::SYS_ioctl, &[0, libc::TIOCSTI | above]), REFUSED);
        assert_eq!(usual(libc::SYS_clone, &[libc::CLONE_NEWNS as u64 | above]), REFUSED);
        assert_eq!(usual(libc::SYS_socket, &[libc::AF_VSOCK as u64 | above]), REFUSED);
    }

    #[test]
    fn other_ways_of_calling_are_refused_whole() {
        let program = program(&all(AllowedSockets { unix_sockets: true, internet_sockets: true }));
        assert_eq!(answer(&program, 0x4000_0003, libc::SYS_read as u32, [0; 6]), MISSING, "32-bit");
        #[cfg(target_arch = "x86_64")]
        assert_eq!(answer(&program, MACHINE, libc::SYS_ptrace as u32 | X32, [0; 6]), MISSING, "x32");
    }

    #[test]
    fn sockets_can_be_ruled_out() {
        let program = program(&all(AllowedSockets { unix_sockets: false, internet_sockets: false }));
        for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6] {
            let arguments = [family as u64, 1, 0, 0, 0, 0];
            assert_eq!(answer(&program, MACHINE, libc::SYS_socket as u32, arguments), REFUSED, "{family}");
            let pair = answer(&program, MACHINE, libc::SYS_socketpair as u32, arguments);
            assert_eq!(pair, ALLOWED, "a pair reaches nobody");
        }
    }
}
