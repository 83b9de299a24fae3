// Loaded before a server that listens everywhere on a port that it is told: it gets a free one of this machine, and says which.
import net from "node:net";

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (_port, ...rest) {
  this.once("listening", () => console.log(`http://127.0.0.1:${this.address().port}/mcp`));
  return listen.call(this, 0, "127.0.0.1", ...rest);
};
