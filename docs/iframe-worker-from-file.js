// Browsers start no worker from a page that was opened as a file. Search then runs in a hidden frame instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const base = new URL(url, document.baseURI).href
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      const inside = frame.contentWindow
      this.ready = new Promise(done => {
        inside.postMessageToPage = data => this._arrived(data)
        const write = `<script>
          window.postMessage = data => window.postMessageToPage(data)
          window.importScripts = (...urls) => urls.reduce((before, one) => before.then(() => new Promise(loaded => {
            const script = document.createElement("script")
            script.src = new URL(one, ${JSON.stringify(base)})
            script.onload = loaded
            document.head.append(script)
          })), Promise.resolve())
        <\/script>`
        frame.contentDocument.open()
        inside.postMessageToPage = data => this._arrived(data)
        frame.contentDocument.write(write)
        const script = frame.contentDocument.createElement("script")
        script.src = base
        script.onload = () => done(inside)
        frame.contentDocument.head.append(script)
        frame.contentDocument.close()
      })
      this.frame = frame
    }
    _arrived(data) {
      const event = new MessageEvent("message", { data })
      this.dispatchEvent(event)
      if (this.onmessage) this.onmessage(event)
    }
    postMessage(data) {
      this.ready.then(inside => inside.dispatchEvent(new MessageEvent("message", { data })))
    }
    terminate() {
      this.frame.remove()
    }
  }
}
