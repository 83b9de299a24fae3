// A certified OpenID provider on loopback for one client; anybody signs in with any password.
// node provider.mjs FOLDER REDIRECT_URI: prints its address when it takes requests.
import { createServer } from 'node:http';

const [folder, redirectUri] = process.argv.slice(2);
const { default: Provider } = await import(`${folder}/node_modules/oidc-provider/lib/index.js`);

const server = createServer();
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
  clients: [{ client_id: 'interlock', client_secret: 'a secret of the client', redirect_uris: [redirectUri] }],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['groups'] },
  findAccount: (_, sub) => ({
    accountId: sub,
    claims: () => ({ sub, email: `${sub}@example.com`, email_verified: sub !== 'mallory', groups: ['finance'] }),
  }),
  pkce: { required: () => true },
  features: { devInteractions: { enabled: true } },
  cookies: { keys: ['only for tests'] },
});
server.on('request', provider.callback());
console.log(issuer);
