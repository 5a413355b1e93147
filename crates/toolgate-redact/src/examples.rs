//! What is redacted and what isn't, as tables. `{x36}` and the like are filled in as in `rules.toml`.

mod streams;

use self::streams::streamed;

use crate::*;

/// Fills in `{x36}` and its kin with characters that look random and are always the same.
pub(crate) fn expand(example: &str) -> String {
    const ALPHABETS: &[(char, &str)] = &[
        ('x', "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"),
        ('A', "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"),
        ('h', "0123456789abcdef"),
        ('d', "123456789"),
        ('b', "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"),
    ];
    let mut output = String::new();
    let mut rest = example;
    let mut state = 0x2545_f491_u32;
    while let Some((before, after)) = rest.split_once('{') {
        output.push_str(before);
        rest = after;
        let parts = rest.split_once('}').and_then(|(inside, after)| {
            let (_, letters) = ALPHABETS.iter().find(|(name, _)| inside.starts_with(*name))?;
            Some((letters.as_bytes(), inside[1..].parse::<usize>().ok()?, after))
        });
        let Some((letters, count, after)) = parts else {
            output.push('{');
            continue;
        };
        for _ in 0..count {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            output.push(char::from(letters[(state >> 16) as usize % letters.len()]));
        }
        rest = after;
    }
    output + rest
}

/// Text, with what has to be replaced between « and ».
const SECRETS: &[&str] = &[
    "DB_PASSWORD=«hunter2»",
    "export GITHUB_TOKEN=«abc123def»",
    "export GITHUB_TOKEN=\"«abc123def»\"",
    "API_SECRET='«correct horse battery staple»'",
    "  - POSTGRES_PASSWORD=«letmein»",
    "docker run -e MYSQL_ROOT_PASSWORD=«swordfish» mysql",
    "FOO=1 MY_TOKEN=«zxcvbn» ./run",
    "\"password\": \"«hunter2!»\"",
    "{\\\"password\\\":\\\"«hunter2»\\\",\\\"a\\\":1}",
    "{\"a\":\"{\\\"password\\\":\\\"«hunter2»\\\"}\"}",
    "password: «hunter2»",
    "  password: «p@ssword»\n",
    "password: «hunter2» # production\n",
    "db:\\n  password: «hunter2»\\n",
    "password = \"«hunter2»\"",
    "password='«hunter2»'",
    "password=«hunter2»",
    "let db_password = \"«hunter2»\";",
    "String dbPassword = \"«hunter2»\";",
    "const char *password = \"«hunter2»\";",
    "config['password'] = '«hunter2»'",
    "password: \"«hunter2»\".to_string(),",
    "pass_phrase, passphrase := \"«tr0ub4dor&3»\"",
    "Server=db;User Id=sa;Password=«Str0ng!Pass»;Encrypt=yes",
    "Uid=me;Pwd=«letmein»;",
    "mysql -u root --password=«hunter2» db",
    "tool --password «hunter2» --verbose",
    "postgres://user:«pw»@host/db",
    "DATABASE_URL=postgres://postgres:«postgres»@localhost:5432/app",
    "redis://:«foobared»@cache:6379/0",
    "mongodb+srv://app:«p@ss»@cluster0.example.net/db",
    "https://oauth2:«{x20}»@gitlab.com/a/b.git",
    "https://«{x40}»@github.com/a/b.git",
    "AWS_SECRET_ACCESS_KEY=«wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY»",
    "aws_access_key_id = «AKIAIOSFODNN7EXAMPLE»",
    "Authorization: Bearer «abcdef0123456789abcdef»",
    "authorization: Bearer «{x12}»",
    "Authorization: token «{h40}»",
    "Authorization: Basic «dXNlcjpwYXNz»",
    "curl -H 'Authorization: Bearer «{x40}»' https://x",
    "headers = {\"Authorization\": \"Bearer «{x40}»\"}",
    "curl -u admin:«hunter2» https://x",
    "X-Api-Key: «{x32}»",
    "curl -H \"X-Api-Key: «{x32}»\" https://x",
    "api_key = \"«{x24}»\"",
    "\"apiKey\": \"«{x24}»\",",
    "client_secret: «{x24}»",
    "{token: «{x32}», id: 1}",
    "https://x/?access_token=«{x32}»&q=1",
    "SECRET_KEY=«{x50}»",
    "APP_KEY=«base64:{b43}=»",
    "«ghp_{x36}»",
    "\u{1b}[31m«ghp_{x36}»\u{1b}[0m",
    "{\"out\":\"first\\n«ghp_{x36}»\\n\"}",
    "«github_pat_{x22}_{x59}»",
    "«glpat-{x20}»",
    "key «sk-proj-{x48}» ok",
    "«sk-ant-api03-{x93}»",
    "«AIza{x35}»",
    "«xoxb-{d12}-{d12}-{x24}»",
    "https://hooks.slack.com/services/«T{A8}/B{A8}/{x24}»",
    "«sk_live_{x24}»",
    "«SG.{x22}.{x43}»",
    "//registry.npmjs.org/:_authToken=«npm_{x36}»",
    "«dckr_pat_{x27}»",
    "https://api.telegram.org/bot{d9}:«AA{x33}»/getMe",
    "«hf_{x34}»",
    "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=«{b86}==»;",
    "id_token: «eyJ{x33}.eyJ{x300}.{x43}»",
    "«eyJ{x33}.eyJ{x3000}.{x43}» end",
    "machine x.example login me password «hunter2»",
    "ALTER USER app WITH PASSWORD '«hunter2»';",
    "<password>«hunter2»</password>",
    "{\"name\": \"DB_PASSWORD\", \"value\": \"«hunter2»\"}",
    "-----BEGIN RSA PRIVATE KEY-----\n«{b64}\n{b64}\n{b64}\n{b20}=»\n-----END RSA PRIVATE KEY-----\nafter",
    "-----BEGIN OPENSSH PRIVATE KEY-----\n«{b70}\n{b70}\n{b70}»\n-----END OPENSSH PRIVATE KEY-----\n",
    "{\"private_key\": \"-----BEGIN PRIVATE KEY-----\\n«{b64}\\n{b64}\\n{b20}»\\n-----END PRIVATE KEY-----\\n\"}",
    "key: |\n  -----BEGIN EC PRIVATE KEY-----\n  «{b64}\n  {b64}\n  {b30}=»\n  -----END EC PRIVATE KEY-----\nnext: 1",
    "-----BEGIN PRIVATE KEY-----\n«{b64}\n{b64}»",
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: GnuPG v2\n\n«{b64}\n{b40}»\n=abcd\n-----END PGP PRIVATE KEY BLOCK-----",
    "Private-Lines: 2\n«{b64}\n{b40}»\nPrivate-MAC: 0\n",
    "client-key-data: «LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tLQo{b2000}==»\n",
    "«AGE-SECRET-KEY-1{A58}»",
    "\u{1b}[01;31m\u{1b}[KDB_PASSWORD\u{1b}[m\u{1b}[K=«hunter2»",
    "\u{1b}[35m\u{1b}[K.env\u{1b}[m\u{1b}[K\u{1b}[36m\u{1b}[K:\u{1b}[m\u{1b}[K\u{1b}[01;31m\u{1b}[KAPI_TOKEN\u{1b}[m\u{1b}[K=«abc123def»\nnext",
    "\u{1b}[01;31m\u{1b}[K«ghp_\u{1b}[m\u{1b}[K{x36}» \u{1b}[1mbold\u{1b}[m",
    "\u{1b}[34;1m\"password\"\u{1b}[0m\u{1b}[39m:\u{1b}[0m \u{1b}[0;32m\"«hunter2!»\"\u{1b}[0m",
    "password: «hunter2»\u{1b}[0m of me",
    "-----BEGIN \u{1b}[31mPRIVATE\u{1b}[m KEY-----\n«{b64}\n{b64}\n{b20}=»\n-----END PRIVATE KEY-----",
    "HOME=/root\0DB_PASSWORD=«hunter2»\0LANG=C\0",
    "ENV X_PASSWORD «hunter2»\nRUN make",
    "Dockerfile:3:ENV DB_PASSWORD «letmein»",
    "set -x API_TOKEN «abc123def»\n",
    "set -gx API_TOKEN \"«abc123def»\"",
    "define(\"DB_PASSWORD\",\"«letmein»\");",
    "define( 'AUTH_KEY', '«{x30}!{x20} {x10}»' );",
    "MAIL_PASS=«letmein»",
    "SECRET_KEY_BASE=«{h128}»",
    "  secret_key_base: «{h128}»\n",
    "[Interface]\nPrivateKey = «{b42}A=»\nAddress = 10.0.0.1/24",
    "PresharedKey = «{b42}0=»",
    "Set-Cookie: sessionid=«{x32}»; HttpOnly; Path=/",
    "Cookie: theme=dark; PHPSESSID=«{h26}»; lang=en",
    "localhost\tFALSE\t/\tFALSE\t0\tsessionid\t«{x32}»",
    "client.login('«M{x23}.{x6}.{x38}»');",
    "bot.run(\"«M{x25}.{x6}.{x27}»\")",
    "sshpass -p «hunter2» ssh me@host",
    "sshpass -p '«correct horse»' ssh me@host",
];

/// Text that stays as it is.
const ORDINARY: &[&str] = &[
    "password = get_password()",
    "password = getpass.getpass(\"Password: \")",
    "token: str",
    "token: String,",
    "token: u64",
    "token: uint256",
    "fn check(token: &str, secret: &[u8; 32]) -> bool {",
    "API_KEY = os.environ[\"API_KEY\"]",
    "API_KEY = os.getenv('API_KEY_V2')",
    "MAX_TOKEN=4096",
    "max_tokens: 4096",
    "const secret = process.env.SECRET",
    "const { token, secret } = require('./config2')",
    "Authorization: Bearer ${token}",
    "Authorization: Bearer <token>",
    "Authorization: Bearer {token}",
    "Authorization: Bearer $TOKEN",
    "f\"Bearer {self.token}\"",
    "Bearer <token>",
    "bearer token authentication is described in section-2",
    "Authorization: Basic realm",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  file.txt",
    "id = \"123e4567-e89b-12d3-a456-426614174000\"",
    "data:image/png;base64,{b2000}==",
    "integrity=\"sha512-{b86}==\"",
    "-----BEGIN PRIVATE KEY-----",
    "if (pem.includes('-----BEGIN PRIVATE KEY-----')) {",
    "const HEADER: &str = \"-----BEGIN PRIVATE KEY-----\";\nconst FOOTER: &str = \"-----END PRIVATE KEY-----\";",
    "return '-----BEGIN PRIVATE KEY-----\\n' + body + '\\n-----END PRIVATE KEY-----'",
    "-----BEGIN CERTIFICATE-----\n{b64}\n{b64}\n-----END CERTIFICATE-----",
    "-----BEGIN PUBLIC KEY-----\n{b64}\n-----END PUBLIC KEY-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b43} me@host",
    "DB_PASSWORD=$DB_PASSWORD",
    "DB_PASSWORD=\"${DB_PASSWORD:-}\"",
    "TOKEN=$(gh auth token)",
    "TOKEN=`cat token`",
    "PASSWORD=",
    "password: ''",
    "password: \"\"",
    "password: ${{ secrets.DB_PASSWORD }}",
    "password: {{ .Values.db.password }}",
    "password: !vault |",
    "\"password\": \"********\"",
    "\"password\": \"<your password>\"",
    "\"password\": \"Password\"",
    "\"password\": \"Please enter your password (8 characters)\"",
    "\"password\": \"string\"",
    "\"password\": {\"type\": \"string\", \"minLength\": 8}",
    "'password' => 'required|min:8',",
    "<input type=\"password\" name=\"password1\" id=\"pw1\">",
    "passwordField.text = \"value1\"",
    "assert token.kind == \"ident2\"",
    "if token == \"i32\" || token === \"=>\" {",
    "match token { Token::Number(n) => n, Token::Ident1 => 0 }",
    "tokens = tokenizer.encode(text1)",
    "nextPageToken: \"CAUQAA1234567890abcdef\"",
    "\"next_token\": \"abc123def456\"",
    "connect(user=user1, password=password1, host=host1)",
    "Client(api_key=settings.api_key2)",
    "api_key: process.env.API_KEY_2,",
    "self.token = token2",
    "secretName: my-tls-secret-2",
    "secret: \"my-app-secret-v2\"",
    "secretKeyRef: {name: db-credentials-1, key: password}",
    "token_url = \"https://auth.example.com/oauth2/token\"",
    "TOKEN_PATH=/var/run/secrets/token1",
    "SSH_KEY=/home/me/.ssh/id_ed25519",
    "PRIMARY_KEY=user_id_2",
    "CACHE_KEY=users:profile:2",
    "password_hash = hash_password(password1)",
    "def reset_password(self, token1): pass",
    "# The secret is 32 bytes long; the token expires after 3600s.",
    "Forgot your password? Click here: https://example.com/reset",
    "http://localhost:8080/path@2",
    "https://example.com:443/a/b?c=d#e",
    "postgres://$USER:$PASSWORD@$HOST/db",
    "postgres://user:{password}@host/db",
    "git@github.com:owner/repository.git",
    "ssh://git@github.com:22/owner/repository.git",
    "docker run -u 1000:1000 image",
    "npm_config_registry=https://registry.npmjs.org/",
    "//registry.npmjs.org/:_authToken=${NPM_TOKEN}",
    "OPENAI_API_KEY=sk-...",
    "export OPENAI_API_KEY=your-api-key-here",
    "ANTHROPIC_API_KEY=<key>",
    "class='sk-fading-circle sk-circle1'",
    "task-1234567890123456789012345678",
    "East Asia, AKIA and friends",
    "eyJhbGciOiJIUzI1NiJ9 is the header of a JWT",
    "import { getToken } from 'next-auth/jwt2';",
    "csrf_token = request.form['csrf_token2']",
    "public_key = \"{x43}=\"",
    "keys = [k for k in keys if k.startswith('key-1')]",
    "secret_access_key = var.secret_access_key",
    "Vec<Token>, Option<Secret>, Result<Password2, Error>",
    "password123 = 1",
    "--token FILE  read the token from FILE",
    "#define PASSWORD_MAX 128",
    "enum Kind { Password = 1, Token = 2, Secret = 4 }",
    "\u{1b}[1m\u{1b}[32m   Compiling\u{1b}[0m toolgate-redact v0.1.0",
    "\u{1b}[31mpassword\u{1b}[0m: str, \u{1b}[33mtoken\u{1b}[0m: u64",
    "ENV NODE_ENV production",
    "ENV PATH /usr/local/bin:$PATH",
    "The ENV DB_PASSWORD variable must be set before the token expires.",
    "set -x; curl -H @token https://x",
    "set -x PATH /opt/secret/bin $PATH",
    "set -e TOKEN",
    "define('WP_DEBUG', true);",
    "define('DB_PASSWORD', getenv('DB_PASSWORD'));",
    "define('AUTH_KEY', 'put your unique phrase here');",
    "RENDER_PASS=shadow ./bench",
    "TESTS_PASS=true",
    "SECRET_KEY_BASE=$(openssl rand -hex 64)",
    "[Peer]\nPublicKey = {b42}A=\nAllowedIPs = 0.0.0.0/0",
    "session = Session(engine2)",
    "with Session(bind=engine1) as session:",
    "session_id=$1 sessionid=${SESSION_ID}",
    "\"session_id\": \"0d3ecf3c-7f1a-4f0e-9a55-1c1d3f1b2a10\"",
    "Set-Cookie: theme=dark; Path=/; Max-Age=31536000",
    "client.login(process.env.DISCORD_TOKEN)",
    "app.run('package.module.function2')",
    "sshpass -f ~/.pass ssh me@host",
    "sshpass -p \"$PASS\" ssh -p 2222 me@host",
    "***REDACTED***",
    "password: ***REDACTED***",
    "postgres://user:***REDACTED***@host/db",
];

/// The example without its marks, and with the marked parts replaced.
fn before_and_after(example: &str) -> (String, String) {
    let text = expand(example);
    let mut after = String::new();
    let mut rest = text.as_str();
    while let Some((start, tail)) = rest.split_once('«') {
        after.push_str(start);
        after.push_str(REDACTED);
        rest = tail.split_once('»').expect("every mark is closed").1;
    }
    (text.replace(['«', '»'], ""), after + rest)
}

#[test]
fn secrets_are_replaced_and_nothing_around_them() {
    assert!(SECRETS.len() >= 60);
    let redactor = Redactor::default();
    let mut faults = Vec::new();
    for example in SECRETS {
        let (before, after) = before_and_after(example);
        let found = redactor.text(&before);
        if found != after {
            faults.push(format!("expected {after}\n   found {found}"));
        }
        assert_eq!(redactor.text(&after), after, "a second time changes nothing");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn ordinary_text_stays_as_it_is() {
    assert!(ORDINARY.len() >= 60);
    let redactor = Redactor::default();
    let texts = ORDINARY.iter().map(|example| expand(example));
    let faults: Vec<String> = texts
        .filter_map(|text| match redactor.text(&text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(changed) => Some(format!("{text}\n  became {changed}")),
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn known_secrets_are_replaced_in_every_form_and_only_in_their_own_case() {
    let long = expand("{b3000}");
    let secrets = [("A_TOKEN", "op\"en sésame"), ("B_KEY", "Xyzzy-Plugh"), ("LONG_KEY", long.as_str())];
    let redactor = Redactor::new(secrets.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let cases = [
        ("<op\"en sésame>".to_owned(), "<***REDACTED***>"),
        ("{\"a\":\"op\\\"en sésame\"}".to_owned(), "{\"a\":\"***REDACTED***\"}"),
        ("?q=op%22en%20s%C3%A9same&x".to_owned(), "?q=***REDACTED***&x"),
        ("Xyzzy-PlughXyzzy-Plugh xyzzy-plugh".to_owned(), "***REDACTED*** xyzzy-plugh"),
        (format!("a {long} b"), "a ***REDACTED*** b"),
    ];
    for (text, expected) in cases {
        assert_eq!(redactor.text(&text), expected);
        assert_eq!(streamed(&redactor, text.as_bytes(), &[1, 7, 600]).0, expected.as_bytes());
    }
    let shown = format!("{redactor:?}");
    assert!(shown.contains("A_TOKEN") && !shown.contains("sésame"), "{shown}");
}

#[test]
fn values_that_would_match_everywhere_are_left_out() {
    let redactor = Redactor::new(["", "a", "REDACTED"].map(|value| ("A_TOKEN".to_owned(), value.to_owned())));
    assert_eq!(redactor.text("banana REDACTED"), "banana REDACTED");
}

/// Each kind of secret that was once missed, by the words in which it was reported.
#[test]
fn what_was_once_missed_is_found() {
    let redactor = Redactor::default();
    for example in [
        "DB_PASSWORD=\u{1b}[01;31m\u{1b}[K«hunter2x»\u{1b}[m\u{1b}[K",
        "ENV X_PASSWORD «hunter2x»",
        "set -x API_TOKEN «hunter2x»",
        "define(\"DB_PASSWORD\",\"«hunter2x»\")",
        "MAIL_PASS=«hunter2x»",
        "SECRET_KEY_BASE=«{h64}»",
        "PrivateKey = «{b42}E=»",
        "Cookie: sessionid=«{x32}»",
        "DISCORD_TOKEN=«M{x23}.G{x5}.{x38}»",
        "sshpass -p «hunter2x» ssh host",
    ] {
        let (before, _) = before_and_after(example);
        let secret = expand(example).split('«').nth(1).and_then(|rest| rest.split('»').next()).unwrap().to_owned();
        let found = redactor.text(&before);
        assert!(!found.contains(&secret) && found.contains(REDACTED), "{before} became {found}");
    }
}
