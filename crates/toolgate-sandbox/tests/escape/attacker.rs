//! Makes one call that nobody inside may make, and tells how the kernel answered: `done`, or the number of the error.
#![allow(unsafe_code, clippy::disallowed_methods, reason = "attackers don't ask")]

use std::ffi::CString;
use std::io::Error;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use libc::c_long;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match attempt(&words) {
        Ok(()) => println!("done"),
        Err(error) => {
            println!("{} {error}", error.raw_os_error().unwrap_or(-1));
            std::process::exit(1);
        }
    }
}

/// How long an answer may take; on a busy machine it takes its time.
const LONGEST_WAIT: std::time::Duration = std::time::Duration::from_secs(120);

fn attempt(words: &[&str]) -> Result<(), Error> {
    match words {
        ["connect", path] => UnixStream::connect(path).map(drop),
        ["connect-abstract", name] => {
            use std::os::linux::net::SocketAddrExt;
            let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
            UnixStream::connect_addr(&address).map(drop)
        }
        ["serve-and-connect"] => serve_and_connect(),
        ["connect-tcp", address] => std::net::TcpStream::connect(address).map(drop),
        ["serve-at", address] => serve_at(address),
        ["speak", host, port, text] => speak(host, port.parse().unwrap(), text.replace("\\r\\n", "\r\n").as_bytes()),
        ["client-hello", host, port, names] => speak(host, port.parse().unwrap(), &client_hello(names)),
        ["ask", server, name] => ask(server, &name.replace("\\0", "\0")),
        ["send", address, text] => std::net::UdpSocket::bind("0.0.0.0:0")?.send_to(text.as_bytes(), address).map(drop),
        ["allocate", bytes] => allocate(bytes.parse().unwrap()),
        ["threads", many] => threads(many.parse().unwrap()),
        ["type", text] => type_into_terminal(text),
        ["utime", path] => utime(path),
        ["attribute", path] => attribute(path),
        ["x32"] => call(0x4000_0000 | libc::SYS_getpid, [0; 6]),
        ["be-read"] => be_read(),
        ["ptrace-attach", pid] => {
            call(libc::SYS_ptrace, [i64::from(libc::PTRACE_ATTACH), pid.parse().unwrap(), 0, 0, 0, 0])
        }
        ["read-memory", pid] => read_memory(pid.parse().unwrap()),
        [name] => call_by_name(name),
        _ => panic!("no such attack: {words:?}"),
    }
}

/// Calls that need nothing around them. What matters is whether the kernel lets them happen.
fn call_by_name(name: &str) -> Result<(), Error> {
    let user_namespace = i64::from(libc::CLONE_NEWUSER);
    let mut io_uring = [0u8; 120];
    match name {
        "keyctl" => call(libc::SYS_keyctl, [0, -3, 1, 0, 0, 0]),
        "add_key" => add_key(),
        "userfaultfd" => call(libc::SYS_userfaultfd, [1, 0, 0, 0, 0, 0]),
        "io_uring" => call(libc::SYS_io_uring_setup, [1, io_uring.as_mut_ptr() as i64, 0, 0, 0, 0]),
        "unshare" => call(libc::SYS_unshare, [user_namespace, 0, 0, 0, 0, 0]),
        "clone" => clone_with(user_namespace),
        "clone3" => clone3_with(user_namespace as u64),
        "ptrace" => call(libc::SYS_ptrace, [i64::from(libc::PTRACE_TRACEME), 0, 0, 0, 0, 0]),
        "bpf" => call(libc::SYS_bpf, [0, 0, 0, 0, 0, 0]),
        "perf" => call(libc::SYS_perf_event_open, [0, 0, -1, -1, 0, 0]),
        "handle" => call(libc::SYS_name_to_handle_at, [0, 0, 0, 0, 0, 0]),
        "mount" => mount(),
        "vsock" => call(libc::SYS_socket, [i64::from(libc::AF_VSOCK), 1, 0, 0, 0, 0]),
        "alg" => call(libc::SYS_socket, [i64::from(libc::AF_ALG), 5, 0, 0, 0, 0]),
        "packet" => call(libc::SYS_socket, [i64::from(libc::AF_PACKET), 3, 0, 0, 0, 0]),
        "netlink-audit" => call(libc::SYS_socket, [i64::from(libc::AF_NETLINK), 3, 9, 0, 0, 0]),
        _ => panic!("no such call: {name}"),
    }
}

fn call(number: c_long, [a, b, c, d, e, f]: [i64; 6]) -> Result<(), Error> {
    // SAFETY: an attack; whatever it does, it does to this process.
    match unsafe { libc::syscall(number, a, b, c, d, e, f) } {
        -1 => Err(Error::last_os_error()),
        _ => Ok(()),
    }
}

fn add_key() -> Result<(), Error> {
    let (kind, name, value) = (c"user", c"toolgate-attack", b"x");
    let arguments = [kind.as_ptr() as i64, name.as_ptr() as i64, value.as_ptr() as i64, 1, -2, 0];
    call(libc::SYS_add_key, arguments)
}

fn clone_with(flags: i64) -> Result<(), Error> {
    // SAFETY: as after fork; the child ends at once.
    match unsafe { libc::syscall(libc::SYS_clone, flags | i64::from(libc::SIGCHLD), 0, 0, 0, 0) } {
        -1 => Err(Error::last_os_error()),
        // SAFETY: ends the child.
        0 => unsafe { libc::_exit(0) },
        _ => Ok(()),
    }
}

fn clone3_with(flags: u64) -> Result<(), Error> {
    // SAFETY: plain numbers.
    let mut arguments: libc::clone_args = unsafe { std::mem::zeroed() };
    arguments.flags = flags;
    arguments.exit_signal = libc::SIGCHLD as u64;
    // SAFETY: as after fork; the child ends at once.
    match unsafe { libc::syscall(libc::SYS_clone3, &raw const arguments, size_of::<libc::clone_args>()) } {
        -1 => Err(Error::last_os_error()),
        // SAFETY: ends the child.
        0 => unsafe { libc::_exit(0) },
        _ => Ok(()),
    }
}

/// No attack: a server and its client, as tests of all kinds have them.
fn serve_and_connect() -> Result<(), Error> {
    let server = std::net::TcpListener::bind("127.0.0.1:0")?;
    let address = server.local_addr()?;
    let client = std::thread::spawn(move || std::net::TcpStream::connect(address).map(drop));
    server.accept()?;
    client.join().unwrap_or_else(|_| Err(Error::from_raw_os_error(libc::EIO)))
}

/// Says when it listens, and answers one client.
fn serve_at(address: &str) -> Result<(), Error> {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind(address)?;
    println!("listening");
    let (mut stream, _) = listener.accept()?;
    let _ = stream.read(&mut [0; 16])?;
    stream.write_all(b"answered")
}

/// Says something to a server and shows what it answers.
fn speak(host: &str, port: u16, words: &[u8]) -> Result<(), Error> {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect((host, port))?;
    stream.set_read_timeout(Some(LONGEST_WAIT))?;
    stream.write_all(words)?;
    let mut answer = [0; 4096];
    match stream.read(&mut answer)? {
        0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
        count => {
            println!("{}", String::from_utf8_lossy(&answer[..count]));
            Ok(())
        }
    }
}

/// A TLS ClientHello with a server_name extension for each of these names, separated by commas.
fn client_hello(names: &str) -> Vec<u8> {
    let sized = |width: usize, content: &[u8]| [&(content.len() as u32).to_be_bytes()[4 - width..], content].concat();
    let server_name = |name: &str| {
        let list = sized(2, &[&[0][..], &sized(2, name.as_bytes())].concat());
        [&[0, 0][..], &sized(2, &list)].concat()
    };
    let names = names.split(',').filter(|name| !name.is_empty());
    let extensions = sized(2, &names.flat_map(server_name).collect::<Vec<u8>>());
    let body = [&[3, 3][..], &[9; 32], &sized(1, &[]), &sized(2, &[0x13, 1]), &sized(1, &[0]), &extensions].concat();
    let message = [&[1][..], &sized(3, &body)].concat();
    [&[0x16, 3, 1][..], &sized(2, &message)].concat()
}

/// Asks a nameserver for an IPv4 address, letter by letter as told.
fn ask(server: &str, name: &str) -> Result<(), Error> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0")?;
    socket.set_read_timeout(Some(LONGEST_WAIT))?;
    let mut message = vec![1, 2, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.').filter(|label| !label.is_empty()) {
        message.push(label.len() as u8);
        message.extend(label.as_bytes());
    }
    message.extend([0, 0, 1, 0, 1]);
    socket.send_to(&message, (server, 53))?;
    let mut answer = [0; 512];
    let (count, _) = socket.recv_from(&mut answer)?;
    match (answer[3] & 0xf, answer[7]) {
        (0, 1..) => {
            println!("{:?}", &answer[count - 4..count]);
            Ok(())
        }
        _ => Err(std::io::ErrorKind::NotFound.into()),
    }
}

/// In a user namespace of its own, where every user may.
fn mount() -> Result<(), Error> {
    let both = i64::from(libc::CLONE_NEWUSER | libc::CLONE_NEWNS);
    call(libc::SYS_unshare, [both, 0, 0, 0, 0, 0]).and_then(|()| {
        let (kind, at) = (c"tmpfs", c"/mnt");
        call(libc::SYS_mount, [kind.as_ptr() as i64, at.as_ptr() as i64, kind.as_ptr() as i64, 0, 0, 0])
    })
}

/// Touches every page, so that it is memory and not a promise.
fn allocate(bytes: usize) -> Result<(), Error> {
    // SAFETY: writes to what was just allocated, as far as it goes.
    unsafe {
        let memory = libc::malloc(bytes);
        if memory.is_null() {
            return Err(Error::last_os_error());
        }
        libc::memset(memory, 1, bytes);
    }
    Ok(())
}

fn threads(many: usize) -> Result<(), Error> {
    let start = |_| std::thread::Builder::new().stack_size(64 << 10).spawn(std::thread::park);
    let threads: Result<Vec<_>, Error> = (0..many).map(start).collect();
    threads.map(std::mem::forget)
}

fn type_into_terminal(text: &str) -> Result<(), Error> {
    let terminal = std::fs::File::open("/dev/tty")?;
    text.bytes().try_for_each(|byte| {
        // SAFETY: TIOCSTI reads one byte.
        match unsafe { libc::ioctl(terminal.as_raw_fd(), libc::TIOCSTI, &raw const byte) } {
            -1 => Err(Error::last_os_error()),
            _ => Ok(()),
        }
    })
}

fn utime(path: &str) -> Result<(), Error> {
    let path = CString::new(path)?;
    call(libc::SYS_utimensat, [i64::from(libc::AT_FDCWD), path.as_ptr() as i64, 0, 0, 0, 0])
}

fn attribute(path: &str) -> Result<(), Error> {
    let (path, name, value) = (CString::new(path)?, c"user.attack", b"x");
    call(libc::SYS_setxattr, [path.as_ptr() as i64, name.as_ptr() as i64, value.as_ptr() as i64, 1, 0, 0])
}

/// No attack: says its process id, and waits for whoever reads its memory.
fn be_read() -> Result<(), Error> {
    println!("{}", std::process::id());
    loop {
        std::thread::park();
    }
}

/// Reads a byte of another process's memory, where its program begins.
fn read_memory(pid: i64) -> Result<(), Error> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps"))?;
    let address = i64::from_str_radix(maps.split('-').next().unwrap_or_default(), 16).unwrap_or_default();
    let mut byte = 0u8;
    let here = libc::iovec { iov_base: (&raw mut byte).cast(), iov_len: 1 };
    let there = libc::iovec { iov_base: address as *mut libc::c_void, iov_len: 1 };
    call(libc::SYS_process_vm_readv, [pid, &raw const here as i64, 1, &raw const there as i64, 1, 0])
}
