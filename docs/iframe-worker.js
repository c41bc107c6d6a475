// Browsers start no worker from a file. The search then runs in a hidden frame, with the same messages.
if (location.protocol === 'file:') {
  window.Worker = class extends EventTarget {
    #frame = document.createElement('iframe');
    #waiting = [];

    constructor(url) {
      super();
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      const inside = this.#frame.contentWindow;
      inside.postMessage = data => this.dispatchEvent(new MessageEvent('message', {data}));
      inside.importScripts = (...urls) => Promise.all(urls.map(item => this.#load(item)));
      this.#load(url).then(() => {
        const waiting = this.#waiting;
        this.#waiting = null;
        waiting.forEach(data => this.postMessage(data));
      });
    }

    #load(url) {
      return new Promise((resolve, reject) => {
        const script = this.#frame.contentDocument.createElement('script');
        Object.assign(script, {src: new URL(url, document.baseURI).href, onload: resolve, onerror: reject});
        this.#frame.contentDocument.head.append(script);
      });
    }

    postMessage(data) {
      if (this.#waiting) this.#waiting.push(data);
      else this.#frame.contentWindow.dispatchEvent(new MessageEvent('message', {data}));
    }

    terminate() {
      this.#frame.remove();
    }
  };
}
