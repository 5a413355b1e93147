//! Rules into instructions. The program goes through them one after the other; the kernel remembers which calls pass
//! whatever their arguments are and never runs it for those again, so its length costs little.

use super::super::super::kernel::filter::Instruction;
use super::rules::{Check, Rule, Test};

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
#[cfg(target_arch = "x86_64")]
const IF_AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const ANSWER: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// The whole program.
pub(super) fn program(rules: &[Rule]) -> Vec<Instruction> {
    let mut program = vec![
        plain(LOAD, MACHINE_AT),
        // Another machine's calls (32-bit programs) have other numbers: none of them.
        jump(IF_EQUAL, MACHINE, 1, 0),
        refuse(libc::ENOSYS),
        plain(LOAD, CALL_AT),
    ];
    #[cfg(target_arch = "x86_64")]
    program.extend([jump(IF_AT_LEAST, X32, 0, 1), refuse(libc::ENOSYS)]);
    for rule in rules {
        append(&mut program, rule);
    }
    program.push(plain(ANSWER, libc::SECCOMP_RET_ALLOW));
    program
}

/// One rule: if it doesn't apply, go on behind it with the number of the call loaded, as it was found.
fn append(program: &mut Vec<Instruction>, rule: &Rule) {
    let mut checks: Vec<Instruction> = Vec::new();
    // Built from the end, so that each jump knows how far the end is: the answer, and the reload after it.
    let mut tail = vec![refuse(rule.error)];
    if !rule.when.is_empty() {
        tail.push(plain(LOAD, CALL_AT));
    }
    for check in rule.when.iter().rev() {
        let mut instructions = check_instructions(check, checks.len() as u8);
        instructions.extend(checks);
        checks = instructions;
    }
    let length = (checks.len() + tail.len()) as u8;
    program.push(jump(IF_EQUAL, rule.call as u32, 0, length));
    program.extend(checks);
    program.extend(tail);
}

/// Loads the argument and goes on if the test holds; otherwise jumps behind what follows (`after` instructions and the
/// answer), to where the number is loaded again.
fn check_instructions(check: &Check, after: u8) -> Vec<Instruction> {
    let mut instructions = vec![plain(LOAD, ARGUMENTS_AT + 8 * check.argument)];
    let out = after + 1;
    match &check.test {
        Test::Is(value) => instructions.push(jump(IF_EQUAL, *value, 0, out)),
        Test::IsNot(value) => instructions.push(jump(IF_EQUAL, *value, out, 0)),
        Test::HasAny(bits) => instructions.push(jump(IF_ANY_BIT, *bits, 0, out)),
        Test::IsNone(values) => {
            let following = (0..values.len() as u8).rev();
            instructions
                .extend(values.iter().zip(following).map(|(value, left)| jump(IF_EQUAL, *value, out + left, 0)));
        }
    }
    instructions
}

fn refuse(error: i32) -> Instruction {
    plain(ANSWER, libc::SECCOMP_RET_ERRNO | error as u32)
}

fn plain(code: u16, value: u32) -> Instruction {
    Instruction { code, jt: 0, jf: 0, k: value }
}

fn jump(code: u16, value: u32, if_so: u8, if_not: u8) -> Instruction {
    Instruction { code, jt: if_so, jf: if_not, k: value }
}

#[cfg(test)]
mod tests {
    use super::super::rules::{Variant, all};
    use super::*;

    /// What the program answers to a call, by a machine as small as its language.
    fn answer(program: &[Instruction], machine: u32, call: u32, arguments: [u64; 6]) -> u32 {
        let mut data = Vec::new();
        data.extend(call.to_le_bytes());
        data.extend(machine.to_le_bytes());
        data.extend(0u64.to_le_bytes());
        arguments.iter().for_each(|argument| data.extend(argument.to_le_bytes()));
        let (mut at, mut loaded) = (0, 0);
        loop {
            let Instruction { code, jt, jf, k } = program[at];
            at += 1;
            let go = |condition: bool| usize::from(if condition { jt } else { jf });
            match code {
                LOAD => loaded = u32::from_le_bytes(data[k as usize..][..4].try_into().unwrap()),
                IF_EQUAL => at += go(loaded == k),
                IF_ANY_BIT => at += go(loaded & k != 0),
                #[cfg(target_arch = "x86_64")]
                IF_AT_LEAST => at += go(loaded >= k),
                ANSWER => return k,
                other => panic!("no such instruction: {other}"),
            }
        }
    }

    fn usual(call: libc::c_long, arguments: &[u64]) -> u32 {
        let program = program(&all(Variant { unix_sockets: true, internet_sockets: true }));
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
    fn the_upper_half_of_an_argument_hides_nothing() {
        let above = 1 << 32;
        assert_eq!(usual(libc::SYS_ioctl, &[0, libc::TIOCSTI | above]), REFUSED);
        assert_eq!(usual(libc::SYS_clone, &[libc::CLONE_NEWNS as u64 | above]), REFUSED);
        assert_eq!(usual(libc::SYS_socket, &[libc::AF_VSOCK as u64 | above]), REFUSED);
    }

    #[test]
    fn other_ways_of_calling_are_refused_whole() {
        let program = program(&all(Variant { unix_sockets: true, internet_sockets: true }));
        assert_eq!(answer(&program, 0x4000_0003, libc::SYS_read as u32, [0; 6]), MISSING, "32-bit");
        #[cfg(target_arch = "x86_64")]
        assert_eq!(answer(&program, MACHINE, libc::SYS_ptrace as u32 | X32, [0; 6]), MISSING, "x32");
    }

    #[test]
    fn sockets_can_be_ruled_out() {
        let program = program(&all(Variant { unix_sockets: false, internet_sockets: false }));
        for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6] {
            let arguments = [family as u64, 1, 0, 0, 0, 0];
            assert_eq!(answer(&program, MACHINE, libc::SYS_socket as u32, arguments), REFUSED, "{family}");
            let pair = answer(&program, MACHINE, libc::SYS_socketpair as u32, arguments);
            assert_eq!(pair, ALLOWED, "a pair reaches nobody");
        }
    }
}
