//! Compiles the seccomp rules into a BPF program. The kernel remembers which system calls are allowed whatever their
//! arguments are, and never runs the program for those again.

use std::collections::BTreeMap;
use std::mem::offset_of;

use super::super::super::syscall::seccomp::BpfInstruction;
use super::rules::{ArgumentCheck, ArgumentTest, SyscallRule};

/// Where `struct seccomp_data` has the number of the system call, the architecture, and the arguments, each with its lower
/// half first.
const NR_OFFSET: u32 = offset_of!(libc::seccomp_data, nr) as u32;
const ARCH_OFFSET: u32 = offset_of!(libc::seccomp_data, arch) as u32;
const ARGS_OFFSET: u32 = offset_of!(libc::seccomp_data, args) as u32;
const ARG_LENGTH: u32 = size_of::<u64>() as u32;

/// `linux/audit.h`: a 64-bit architecture.
const AUDIT_ARCH_64BIT: u32 = 0x8000_0000;
/// `linux/audit.h`: a little-endian architecture.
const AUDIT_ARCH_LE: u32 = 0x4000_0000;
/// `linux/audit.h`: system calls of 64-bit programs on x86.
#[cfg(target_arch = "x86_64")]
const AUDIT_ARCH_X86_64: u32 = libc::EM_X86_64 as u32 | AUDIT_ARCH_64BIT | AUDIT_ARCH_LE;
/// `linux/audit.h`: system calls of 64-bit programs on ARM.
#[cfg(target_arch = "aarch64")]
const AUDIT_ARCH_AARCH64: u32 = libc::EM_AARCH64 as u32 | AUDIT_ARCH_64BIT | AUDIT_ARCH_LE;

#[cfg(target_arch = "x86_64")]
const NATIVE_ARCH: u32 = AUDIT_ARCH_X86_64;
#[cfg(target_arch = "aarch64")]
const NATIVE_ARCH: u32 = AUDIT_ARCH_AARCH64;

/// `asm/unistd.h`: set in the numbers of the x32 ABI, which has the same system calls by numbers that no rule matches.
#[cfg(target_arch = "x86_64")]
const X32_SYSCALL_BIT: u32 = 0x4000_0000;

/// Loads 32 bits of `struct seccomp_data`.
const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const JUMP_IF_ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const JUMP_IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// The BPF program that enforces these rules.
pub(super) fn program(rules: &[SyscallRule]) -> Vec<BpfInstruction> {
    let mut program = vec![
        statement(LOAD, ARCH_OFFSET),
        // Other architectures (32-bit programs) have other numbers, which no rule matches.
        jump(JUMP_IF_EQUAL, NATIVE_ARCH, 1, 0),
        refuse(libc::ENOSYS),
        statement(LOAD, NR_OFFSET),
    ];
    #[cfg(target_arch = "x86_64")]
    program.extend([jump(JUMP_IF_AT_LEAST, X32_SYSCALL_BIT, 0, 1), refuse(libc::ENOSYS)]);
    program.extend(search_tree(&ranges(rules)));
    program
}

/// The BPF program that asks a listener about these system calls. It is installed beside the one above, which refuses other
/// architectures.
pub(super) fn notifying(calls: &[libc::c_long]) -> Vec<BpfInstruction> {
    let mut program = vec![statement(LOAD, NR_OFFSET)];
    for call in calls {
        program.extend([jump(JUMP_IF_EQUAL, *call as u32, 0, 1), statement(RETURN, libc::SECCOMP_RET_USER_NOTIF)]);
    }
    program.push(statement(RETURN, libc::SECCOMP_RET_ALLOW));
    program
}

/// System calls with neighbouring numbers and the same rules.
struct SyscallRange<'a> {
    first: u32,
    last: u32,
    rules: Vec<&'a SyscallRule>,
}

/// All system calls that have rules, by number. Neighbours that are always refused with the same error share a range.
fn ranges(rules: &[SyscallRule]) -> Vec<SyscallRange<'_>> {
    let mut by_call: BTreeMap<u32, Vec<&SyscallRule>> = BTreeMap::new();
    for rule in rules {
        by_call.entry(rule.call as u32).or_default().push(rule);
    }
    let mut ranges: Vec<SyscallRange<'_>> = Vec::new();
    for (call, rules) in by_call {
        let error_always = |rules: &[&SyscallRule]| rules[0].when.is_empty().then_some(rules[0].error);
        match ranges.last_mut() {
            Some(before)
                if before.last + 1 == call
                    && error_always(&rules).is_some()
                    && error_always(&before.rules) == error_always(&rules) =>
            {
                before.last = call;
            }
            _ => ranges.push(SyscallRange { first: call, last: call, rules }),
        }
    }
    ranges
}

/// A binary search for the number of the system call. When a filter is installed, the kernel tries it on every system call
/// there is; a linear search would make that a quarter of a millisecond slower.
fn search_tree(ranges: &[SyscallRange<'_>]) -> Vec<BpfInstruction> {
    let (lower, upper) = match ranges {
        [] => return vec![statement(RETURN, libc::SECCOMP_RET_ALLOW)],
        [one] => return leaf(one),
        _ => ranges.split_at(ranges.len() / 2),
    };
    let below = search_tree(lower);
    let mut program = vec![jump(JUMP_IF_AT_LEAST, upper[0].first, 0, 1), statement(JUMP, below.len() as u32)];
    program.extend(below);
    program.extend(search_tree(upper));
    program
}

/// The rules for one range; if none applies, the system call is allowed.
fn leaf(SyscallRange { first, last, rules }: &SyscallRange<'_>) -> Vec<BpfInstruction> {
    let body: Vec<BpfInstruction> = rules.iter().flat_map(|rule| rule_instructions(rule)).collect();
    let past = body.len() as u8;
    let mut program = match first == last {
        true => vec![jump(JUMP_IF_EQUAL, *first, 0, past)],
        false => vec![jump(JUMP_IF_AT_LEAST, *first, 0, past + 1), jump(JUMP_IF_AT_LEAST, last + 1, past, 0)],
    };
    program.extend(body);
    program.push(statement(RETURN, libc::SECCOMP_RET_ALLOW));
    program
}

/// One rule: its checks, then its error. Built from the end, so that each jump knows how far the end is.
fn rule_instructions(rule: &SyscallRule) -> Vec<BpfInstruction> {
    let mut instructions = vec![refuse(rule.error)];
    for check in rule.when.iter().rev() {
        let mut before = check_instructions(check, instructions.len() as u8);
        before.extend(instructions);
        instructions = before;
    }
    instructions
}

/// Loads the argument and continues if the condition holds; otherwise skips what is left of the rule.
fn check_instructions(check: &ArgumentCheck, left: u8) -> Vec<BpfInstruction> {
    let mut instructions = vec![statement(LOAD, ARGS_OFFSET + ARG_LENGTH * check.argument)];
    match &check.test {
        ArgumentTest::Is(value) => instructions.push(jump(JUMP_IF_EQUAL, *value, 0, left)),
        ArgumentTest::IsNot(value) => instructions.push(jump(JUMP_IF_EQUAL, *value, left, 0)),
        ArgumentTest::HasAny(bits) => instructions.push(jump(JUMP_IF_ANY_BIT, *bits, 0, left)),
        ArgumentTest::IsNone(values) => {
            let following = (0..values.len() as u8).rev();
            let one = |(value, following): (&u32, u8)| jump(JUMP_IF_EQUAL, *value, left + following, 0);
            instructions.extend(values.iter().zip(following).map(one));
        }
    }
    instructions
}

fn refuse(error: i32) -> BpfInstruction {
    statement(RETURN, libc::SECCOMP_RET_ERRNO | error as u32)
}

/// `BPF_STMT` of `linux/filter.h`.
fn statement(code: u16, value: u32) -> BpfInstruction {
    BpfInstruction { code, jt: 0, jf: 0, k: value }
}

/// `BPF_JUMP` of `linux/filter.h`: how many instructions are skipped if the condition is true, and if it is false.
fn jump(code: u16, value: u32, if_true: u8, if_false: u8) -> BpfInstruction {
    BpfInstruction { code, jt: if_true, jf: if_false, k: value }
}

#[cfg(test)]
mod tests {
    use super::super::rules::{AllowedCalls, all};
    use super::*;

    /// What the program returns for a system call, by an interpreter of the instructions that it uses.
    fn run(program: &[BpfInstruction], arch: u32, call: u32, arguments: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend(call.to_le_bytes());
        data.extend(arch.to_le_bytes());
        let instruction_pointer = 0u64;
        data.extend(instruction_pointer.to_le_bytes());
        arguments.iter().for_each(|argument| data.extend(argument.to_le_bytes()));
        let (mut at, mut loaded) = (0, 0);
        loop {
            let BpfInstruction { code, jt, jf, k } = program[at];
            at += 1;
            let skipped = |condition: bool| usize::from(if condition { jt } else { jf });
            match code {
                LOAD => loaded = u32::from_le_bytes(data[k as usize..][..4].try_into().unwrap()),
                JUMP_IF_EQUAL => at += skipped(loaded == k),
                JUMP_IF_ANY_BIT => at += skipped(loaded & k != 0),
                JUMP => at += k as usize,
                JUMP_IF_AT_LEAST => at += skipped(loaded >= k),
                RETURN => return k,
                other => panic!("no such instruction: {other}"),
            }
        }
    }

    fn with_all_sockets(call: libc::c_long, arguments: &[u64]) -> u32 {
        let program = program(&all(AllowedCalls { unix_sockets: true, internet_sockets: true, tracing: false }));
        let mut all_arguments = [0; 6];
        all_arguments[..arguments.len()].copy_from_slice(arguments);
        run(&program, NATIVE_ARCH, call as u32, all_arguments)
    }

    /// `linux/audit.h`: system calls of 32-bit programs on x86.
    const AUDIT_ARCH_I386: u32 = libc::EM_386 as u32 | AUDIT_ARCH_LE;
    const ALLOWED: u32 = libc::SECCOMP_RET_ALLOW;
    const REFUSED: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    const UNKNOWN: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

    #[test]
    fn ordinary_calls_pass() {
        for call in [libc::SYS_read, libc::SYS_openat, libc::SYS_execve, libc::SYS_futex, libc::SYS_landlock_add_rule] {
            assert_eq!(with_all_sockets(call, &[]), ALLOWED, "{call}");
        }
        assert_eq!(with_all_sockets(libc::SYS_clone, &[libc::SIGCHLD as u64]), ALLOWED);
        assert_eq!(with_all_sockets(libc::SYS_ioctl, &[0, libc::TCGETS]), ALLOWED);
        for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK] {
            let arguments = [family as u64, libc::SOCK_STREAM as u64];
            assert_eq!(with_all_sockets(libc::SYS_socket, &arguments), ALLOWED, "{family}");
        }
    }

    #[test]
    fn unix_sockets_that_send_without_connecting_are_refused() {
        let kinds = [
            (libc::SOCK_STREAM, true),
            (libc::SOCK_SEQPACKET, true),
            (libc::SOCK_DGRAM, false),
            (libc::SOCK_RAW, false),
        ];
        for (call, (kind, is_allowed)) in
            [libc::SYS_socket, libc::SYS_socketpair].into_iter().flat_map(|call| kinds.map(|kind| (call, kind)))
        {
            for flags in [0, libc::SOCK_CLOEXEC, libc::SOCK_NONBLOCK, libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK] {
                let found = with_all_sockets(call, &[libc::AF_UNIX as u64, (kind | flags) as u64]);
                assert_eq!(found == ALLOWED, is_allowed, "{call} {kind} {flags}");
            }
        }
        assert_eq!(with_all_sockets(libc::SYS_socket, &[libc::AF_INET as u64, libc::SOCK_DGRAM as u64]), ALLOWED);
    }

    #[test]
    fn a_listener_is_asked_about_what_it_wants_to_know() {
        let program = notifying(&[libc::SYS_connect]);
        let asked = |call: libc::c_long| run(&program, NATIVE_ARCH, call as u32, [0; 6]);
        assert_eq!(asked(libc::SYS_connect), libc::SECCOMP_RET_USER_NOTIF);
        assert_eq!(asked(libc::SYS_accept), ALLOWED);
    }

    #[test]
    fn dangerous_calls_are_refused() {
        for call in [libc::SYS_ptrace, libc::SYS_keyctl, libc::SYS_mount, libc::SYS_unshare, libc::SYS_migrate_pages] {
            assert_eq!(with_all_sockets(call, &[]), REFUSED, "{call}");
        }
        assert_eq!(with_all_sockets(libc::SYS_clone3, &[]), UNKNOWN);
        assert_eq!(with_all_sockets(libc::SYS_clone, &[(libc::CLONE_NEWUSER | libc::SIGCHLD) as u64]), REFUSED);
        for family in [libc::AF_VSOCK, libc::AF_ALG, libc::AF_PACKET, 0, 99] {
            assert_eq!(with_all_sockets(libc::SYS_socket, &[family as u64]), REFUSED, "{family}");
        }
        assert_ne!(
            with_all_sockets(
                libc::SYS_socket,
                &[libc::AF_NETLINK as u64, libc::SOCK_RAW as u64, libc::NETLINK_USERSOCK as u64]
            ),
            ALLOWED
        );
    }

    #[test]
    fn every_rule_is_found_in_the_tree() {
        let rules = all(AllowedCalls { unix_sockets: true, internet_sockets: true, tracing: false });
        for rule in rules.iter().filter(|rule| rule.when.is_empty()) {
            let expected = libc::SECCOMP_RET_ERRNO | rule.error as u32;
            assert_eq!(with_all_sockets(rule.call, &[]), expected, "{}", rule.call);
        }
        let unconditional: Vec<_> = rules.iter().map(|rule| rule.call).collect();
        for call in (0..1000).filter(|call| !unconditional.contains(call)) {
            assert_eq!(with_all_sockets(call, &[]), ALLOWED, "{call}");
        }
    }

    #[test]
    fn the_upper_half_of_an_argument_hides_nothing() {
        let above = 1 << u32::BITS;
        assert_eq!(with_all_sockets(libc::SYS_ioctl, &[0, libc::TIOCSTI | above]), REFUSED);
        assert_eq!(with_all_sockets(libc::SYS_clone, &[libc::CLONE_NEWNS as u64 | above]), REFUSED);
        assert_eq!(with_all_sockets(libc::SYS_socket, &[libc::AF_VSOCK as u64 | above]), REFUSED);
    }

    #[test]
    fn other_architectures_are_refused() {
        let program = program(&all(AllowedCalls { unix_sockets: true, internet_sockets: true, tracing: false }));
        assert_eq!(run(&program, AUDIT_ARCH_I386, libc::SYS_read as u32, [0; 6]), UNKNOWN, "32-bit");
        #[cfg(target_arch = "x86_64")]
        assert_eq!(run(&program, NATIVE_ARCH, libc::SYS_ptrace as u32 | X32_SYSCALL_BIT, [0; 6]), UNKNOWN, "x32");
    }

    #[test]
    fn sockets_can_be_refused() {
        let program = program(&all(AllowedCalls { unix_sockets: false, internet_sockets: false, tracing: false }));
        for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6] {
            let arguments = [family as u64, 1, 0, 0, 0, 0];
            assert_eq!(run(&program, NATIVE_ARCH, libc::SYS_socket as u32, arguments), REFUSED, "{family}");
            let pair = run(&program, NATIVE_ARCH, libc::SYS_socketpair as u32, arguments);
            assert_eq!(pair, ALLOWED, "a pair reaches nobody");
        }
    }
}
